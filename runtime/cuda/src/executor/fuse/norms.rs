//! A norm times a tensor, with what makes the rows that it takes: sums, also over devices, norms before it, experts' results times their
//! weights.

use tpc_ir::op::BinaryKind;
use tpc_ir::{Inst, InstData, Op, Value};

use super::Together;
use super::set::{Set, Up, is_binary};
use crate::kernels::{CHOSEN, Fused, Kept, REDUCED, Rows};

/// The most devices whose parts are added where they are normalised.
const DEVICES: usize = 8;

/// A norm of the set times a tensor: the norm, and the tensor.
fn scaled<'a>(set: &Set<'a>, data: &InstData) -> Option<(&'a InstData, Value)> {
    if !is_binary(data, BinaryKind::Mul) {
        return None;
    }
    let (norm, by) = set.inner(data)?;
    let rows =
        matches!(norm.op, Op::Norm(_)) && set.dims(norm.results[0]) == set.dims(data.results[0]);
    (rows && set.is_float(by) && set.are_f32(&[data.results[0]])).then_some((norm, by))
}

/// What the set makes of rows, whose operands are put to the others.
fn rows(set: &Set<'_>, v: Value, operands: &mut Vec<Value>) -> Option<Rows> {
    let Some(data) = set.of(v) else {
        operands.push(v);
        return set.is_float(v).then_some(Rows::Whole);
    };
    if !set.are_f32(&[v]) {
        return None;
    }
    match &data.op {
        Op::Binary(op) if op.kind == BinaryKind::Add => {
            let [a, b] = *data.operands.as_slice() else {
                return None;
            };
            let (inner, other) = match set.inner(data) {
                Some((_, other)) => (if other == a { b } else { a }, other),
                None => (a, b),
            };
            let of = rows(set, inner, operands)?;
            operands.push(other);
            let whole = set.dims(inner) == set.dims(v) && set.is_float(other);
            (whole && set.of(other).is_none()).then(|| Rows::Added(Box::new(of)))
        }
        Op::Binary(_) => {
            let (norm, by) = scaled(set, data)?;
            let Op::Norm(op) = &norm.op else { return None };
            let x = norm.operands[0];
            let of = rows(set, x, operands)?;
            operands.push(by);
            let plain = matches!(of, Rows::Whole | Rows::Reduced(_));
            let same = set.dims(v) == set.dims(data.results[0])
                && !(set.of(x).is_some() && set.is_kept(x));
            (plain && same).then(|| Rows::Normed(op.clone(), Box::new(of)))
        }
        Op::AllReduce(_) => {
            let width = set.dims(v)[0].as_const();
            let fits = width.is_some_and(|n| n <= REDUCED as u64);
            operands.extend(&data.operands);
            let parts = set.are_f32(&data.operands) && data.operands.len() <= DEVICES;
            (fits && parts && data.results.contains(&v))
                .then_some(Rows::Reduced(data.operands.len()))
        }
        Op::Sum(op) if op.axis == 1 => mixed(set, v, data, operands),
        _ => None,
    }
}

/// Parts times factors, added up along axis 1.
fn mixed(set: &Set<'_>, v: Value, sum: &InstData, operands: &mut Vec<Value>) -> Option<Rows> {
    let product = set.of(sum.operands[0])?;
    let [parts, by] = *product.operands.as_slice() else {
        return None;
    };
    let whole = is_binary(product, BinaryKind::Mul) && set.of(parts).or(set.of(by)).is_none();
    let [n, k, tokens, one] = set.dims(parts);
    let few = k.as_const().is_some_and(|k| k <= CHOSEN);
    // The rows of the result are those of tokens.
    let [m, b, c, d] = set.dims(v);
    let rows = m == n && ((b == tokens && c.is_one()) || (b.is_one() && c == tokens));
    operands.extend([parts, by]);
    let same = set.dims(parts) == set.dims(product.results[0]);
    let fits = whole && few && rows && same && one.is_one() && d.is_one();
    (fits && set.is_float(parts) && set.is_float(by)).then_some(Rows::Mixed)
}

pub(super) fn read(set: &Set<'_>) -> Option<Together> {
    let last = set.last()?;
    let result = *last.results.first()?;
    let mut operands = Vec::new();
    if let Some((norm, by)) = scaled(set, last) {
        let Op::Norm(op) = &norm.op else { return None };
        let x = norm.operands[0];
        let of = rows(set, x, &mut operands)?;
        operands.push(by);
        let kept = set.of(x).is_some() && set.is_kept(x);
        let (kept, mut results) = match kept {
            true => (Kept::Yes, vec![x]),
            false => (Kept::No, Vec::new()),
        };
        results.push(result);
        return Some(Together {
            fused: Fused::NormMul(op.clone(), of, kept),
            operands,
            terms: None,
            results,
        });
    }
    let of = rows(set, result, &mut operands)?;
    Some(Together {
        fused: Fused::Summed(of),
        operands,
        terms: None,
        results: vec![result],
    })
}

/// The sets that end with a sum: with what is added, with one of them, or alone.
fn before(up: &Up<'_>, v: Value) -> Vec<Vec<Inst>> {
    let (sum, data, mut views) = up.of(v);
    views.push(sum);
    if !is_binary(data, BinaryKind::Add) {
        return Vec::new();
    }
    let mut out = Vec::new();
    for operand in &data.operands {
        let made = made(up, *operand);
        if !made.is_empty() {
            out.push([views.clone(), made].concat());
        }
    }
    out.push(views);
    out
}

/// A norm times a tensor, or parts times factors, added up.
fn made(up: &Up<'_>, v: Value) -> Vec<Inst> {
    let (inst, data, mut out) = up.of(v);
    out.push(inst);
    let under = match &data.op {
        Op::Sum(_) => [data.operands[0]].to_vec(),
        Op::Binary(op) if op.kind == BinaryKind::Mul => data.operands.to_vec(),
        _ => return Vec::new(),
    };
    let summed = matches!(data.op, Op::Sum(_));
    let found = under
        .into_iter()
        .map(|v| up.graph().value(v).def.0)
        .find(|i| {
            let op = &up.graph().inst(*i).op;
            match summed {
                true => is_binary(up.graph().inst(*i), BinaryKind::Mul),
                false => matches!(op, Op::Norm(_)),
            }
        });
    match found {
        Some(under) => [out, vec![under]].concat(),
        None => Vec::new(),
    }
}

pub(super) fn propose(up: &Up<'_>) -> Vec<Vec<Inst>> {
    let (mut long, mut sums, mut short) = (Vec::new(), Vec::new(), Vec::new());
    for (inst, data) in up.graph().insts() {
        if is_binary(data, BinaryKind::Mul) {
            let norm = data.operands.iter().map(|v| up.graph().value(*v).def.0);
            for norm in norm.filter(|i| matches!(up.graph().inst(*i).op, Op::Norm(_))) {
                let own = vec![norm, inst];
                let before = before(up, up.graph().inst(norm).operands[0]);
                long.extend(before.into_iter().map(|b| [b, own.clone()].concat()));
                short.push(own);
            }
        }
        if is_binary(data, BinaryKind::Add) {
            let before = before(up, data.results[0]);
            sums.extend(before.into_iter().filter(|s| s.len() > 1));
        }
        if matches!(data.op, Op::Sum(_)) {
            short.push(made(up, data.results[0]));
        }
    }
    long.extend(sums);
    long.extend(short);
    long
}
