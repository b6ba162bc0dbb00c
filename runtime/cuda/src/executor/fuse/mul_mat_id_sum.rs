//! Matches the weighted sum of experts, and tensors added to it.

use tpc_ir::op::BinaryKind;
use tpc_ir::{Inst, Op, Value};

use super::FusedLaunch;
use super::matcher::{DefWalker, Matcher, is_binary};
use super::mul_mat_glu::{ExpertProduct, expert_product};
use crate::kernels::{ExpertBias, FusedOp, MAX_SUMMED_EXPERTS};

/// The maximum number of added tensors: the shared experts and the residual.
const MAX_SUMMANDS: usize = 2;

pub(super) fn read(matcher: &Matcher<'_>) -> Option<FusedLaunch> {
    let last = matcher.last()?;
    let result = *last.results.first()?;
    let (mut sum, mut data, mut more) = (result, last, Vec::new());
    while is_binary(data, BinaryKind::Add) {
        let (_, other) = matcher.inner(data)?;
        let [a, b] = *data.operands.as_slice() else {
            return None;
        };
        let inner = if other == a { b } else { a };
        let same = matcher.dims(inner) == matcher.dims(sum) && matcher.is_float(other);
        more.insert(0, other);
        data = matcher.def(inner).filter(|_| same)?;
        sum = inner;
    }
    let Op::Sum(op) = &data.op else { return None };
    let product = matcher.def(data.operands[0])?;
    let [parts, by] = *product.operands.as_slice() else {
        return None;
    };
    let whole = op.axis == 1 && is_binary(product, BinaryKind::Mul) && matcher.def(by).is_none();
    let [n, k, tokens, one] = matcher.dims(parts);
    let few = k.as_const().is_some_and(|k| k <= MAX_SUMMED_EXPERTS);
    let [m, b, c, d] = matcher.dims(sum);
    let rows = m == n && ((b == tokens && c.is_one()) || (b.is_one() && c == tokens));
    let fits = whole && few && rows && one.is_one() && d.is_one() && more.len() <= MAX_SUMMANDS;
    let floats = matcher.is_float(by) && matcher.are_f32(&[result, sum, product.results[0]]);
    if !fits || !floats || matcher.dims(parts) != matcher.dims(product.results[0]) {
        return None;
    }
    let ExpertProduct {
        product,
        more: bias,
    } = expert_product(matcher, matcher.def(parts)?)?;
    let Op::MulMatId(op) = &product.op else {
        return None;
    };
    let biased = if bias.is_some() {
        ExpertBias::Present
    } else {
        ExpertBias::Absent
    };
    let mut operands = product.operands.to_vec();
    operands.extend(bias);
    operands.push(by);
    let op = FusedOp::MulMatIdSum(op.clone(), biased, more.len());
    operands.extend(more);
    Some(FusedLaunch {
        op,
        operands,
        terms: Some(1),
        results: vec![result],
    })
}

fn adds(defs: &DefWalker<'_>, mut v: Value) -> Option<(Vec<Inst>, Value)> {
    let mut out = Vec::new();
    loop {
        let (user, data) = defs.only_user(v)?;
        out.push(user);
        v = data.results[0];
        if is_binary(data, BinaryKind::Add) {
            return Some((out, v));
        }
        if !defs.context.is_view(user) {
            return None;
        }
    }
}

pub(super) fn propose(defs: &DefWalker<'_>) -> Vec<Vec<Inst>> {
    let mut out = Vec::new();
    for (inst, data) in defs.graph().insts() {
        let Op::Sum(_) = &data.op else { continue };
        let (product, factors, views) = defs.def(data.operands[0]);
        if !is_binary(factors, BinaryKind::Mul) {
            continue;
        }
        let (of, experts, more_views) = defs.def(factors.operands[0]);
        let mut set = [vec![inst, product, of], views, more_views].concat();
        match &experts.op {
            Op::MulMatId(_) => {}
            Op::AddId(_) => set.push(defs.graph().value(experts.operands[0]).def.0),
            _ => continue,
        }
        let (mut ways, mut v) = (vec![set], data.results[0]);
        while ways.len() <= MAX_SUMMANDS
            && let Some((more, next)) = adds(defs, v)
        {
            ways.push([ways[ways.len() - 1].clone(), more].concat());
            v = next;
        }
        ways.reverse();
        out.extend(ways);
    }
    out
}
