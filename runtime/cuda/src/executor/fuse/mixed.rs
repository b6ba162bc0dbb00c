//! Products of experts, times their weights, added up over the experts of a token, and what is added to that.

use tpc_ir::op::BinaryKind;
use tpc_ir::{Inst, Op, Value};

use super::Together;
use super::gated::{OfExperts, of_experts};
use super::set::{Set, Up, is_binary};
use crate::kernels::{Biased, Fused, MIXED};

/// The most tensors that are added: shared experts, and the residual.
const MOST: usize = 2;

pub(super) fn read(set: &Set<'_>) -> Option<Together> {
    let last = set.last()?;
    let result = *last.results.first()?;
    let (mut sum, mut data, mut more) = (result, last, Vec::new());
    while is_binary(data, BinaryKind::Add) {
        let (_, other) = set.inner(data)?;
        let [a, b] = *data.operands.as_slice() else {
            return None;
        };
        let inner = if other == a { b } else { a };
        let same = set.dims(inner) == set.dims(sum) && set.is_float(other);
        more.insert(0, other);
        data = set.of(inner).filter(|_| same)?;
        sum = inner;
    }
    let Op::Sum(op) = &data.op else { return None };
    let product = set.of(data.operands[0])?;
    let [parts, by] = *product.operands.as_slice() else {
        return None;
    };
    let whole = op.axis == 1 && is_binary(product, BinaryKind::Mul) && set.of(by).is_none();
    let [n, k, tokens, one] = set.dims(parts);
    let few = k.as_const().is_some_and(|k| k <= MIXED);
    // The rows of the result are those of tokens.
    let [m, b, c, d] = set.dims(sum);
    let rows = m == n && ((b == tokens && c.is_one()) || (b.is_one() && c == tokens));
    let fits = whole && few && rows && one.is_one() && d.is_one() && more.len() <= MOST;
    let floats = set.is_float(by) && set.are_f32(&[result, sum, product.results[0]]);
    if !fits || !floats || set.dims(parts) != set.dims(product.results[0]) {
        return None;
    }
    let OfExperts {
        product,
        more: bias,
    } = of_experts(set, set.of(parts)?)?;
    let Op::MulMatId(op) = &product.op else {
        return None;
    };
    let biased = if bias.is_some() {
        Biased::Yes
    } else {
        Biased::No
    };
    let mut operands = product.operands.to_vec();
    operands.extend(bias);
    operands.push(by);
    let fused = Fused::MixedExperts(op.clone(), biased, more.len());
    operands.extend(more);
    Some(Together {
        fused,
        operands,
        terms: Some(1),
        results: vec![result],
    })
}

/// What adds to a value that nothing else reads, with the views between.
fn adds(up: &Up<'_>, mut v: Value) -> Option<(Vec<Inst>, Value)> {
    let mut out = Vec::new();
    loop {
        let (user, data) = up.only_user(v)?;
        out.push(user);
        v = data.results[0];
        if is_binary(data, BinaryKind::Add) {
            return Some((out, v));
        }
        if !up.around.is_view(user) {
            return None;
        }
    }
}

pub(super) fn propose(up: &Up<'_>) -> Vec<Vec<Inst>> {
    let mut out = Vec::new();
    for (inst, data) in up.graph().insts() {
        let Op::Sum(_) = &data.op else { continue };
        let (product, factors, views) = up.of(data.operands[0]);
        if !is_binary(factors, BinaryKind::Mul) {
            continue;
        }
        let (of, experts, more_views) = up.of(factors.operands[0]);
        let mut set = [vec![inst, product, of], views, more_views].concat();
        match &experts.op {
            Op::MulMatId(_) => {}
            Op::AddId(_) => set.push(up.graph().value(experts.operands[0]).def.0),
            _ => continue,
        }
        let (mut ways, mut v) = (vec![set], data.results[0]);
        while ways.len() <= MOST
            && let Some((more, next)) = adds(up, v)
        {
            ways.push([ways[ways.len() - 1].clone(), more].concat());
            v = next;
        }
        ways.reverse();
        out.extend(ways);
    }
    out
}
