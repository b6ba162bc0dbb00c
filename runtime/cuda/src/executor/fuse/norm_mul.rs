//! Matches a norm times a tensor, with the source of its rows: sums, sums over devices, an earlier norm, or expert
//! sums.

use tpc_ir::op::BinaryKind;
use tpc_ir::{Inst, InstData, Op, Value};

use super::FusedLaunch;
use super::matcher::{DefWalker, Matcher, is_binary};
use crate::kernels::{FusedOp, KeepInput, MAX_ALL_REDUCE_WIDTH, MAX_ROUTED_EXPERTS, RowSource};

/// The maximum number of devices in a sum before a norm.
const MAX_DEVICES: usize = 8;

fn scaled_norm<'a>(matcher: &Matcher<'a>, data: &InstData) -> Option<(&'a InstData, Value)> {
    if !is_binary(data, BinaryKind::Mul) {
        return None;
    }
    let (norm, by) = matcher.inner(data)?;
    let rows = matches!(norm.op, Op::Norm(_))
        && matcher.dims(norm.results[0]) == matcher.dims(data.results[0]);
    (rows && matcher.is_float(by) && matcher.are_f32(&[data.results[0]])).then_some((norm, by))
}

fn row_source(matcher: &Matcher<'_>, v: Value, operands: &mut Vec<Value>) -> Option<RowSource> {
    let Some(data) = matcher.def(v) else {
        operands.push(v);
        return matcher.is_float(v).then_some(RowSource::Tensor);
    };
    if !matcher.are_f32(&[v]) {
        return None;
    }
    match &data.op {
        Op::Binary(op) if op.kind == BinaryKind::Add => {
            let [a, b] = *data.operands.as_slice() else {
                return None;
            };
            let (inner, other) = match matcher.inner(data) {
                Some((_, other)) => (if other == a { b } else { a }, other),
                None => (a, b),
            };
            let of = row_source(matcher, inner, operands)?;
            operands.push(other);
            let whole = matcher.dims(inner) == matcher.dims(v) && matcher.is_float(other);
            (whole && matcher.def(other).is_none()).then(|| RowSource::Add(Box::new(of)))
        }
        Op::Binary(_) => {
            let (norm, by) = scaled_norm(matcher, data)?;
            let Op::Norm(op) = &norm.op else { return None };
            let x = norm.operands[0];
            let of = row_source(matcher, x, operands)?;
            operands.push(by);
            let plain = matches!(of, RowSource::Tensor | RowSource::AllReduce(_));
            let same = matcher.dims(v) == matcher.dims(data.results[0])
                && !(matcher.def(x).is_some() && matcher.is_read_outside(x));
            (plain && same).then(|| RowSource::Norm(op.clone(), Box::new(of)))
        }
        Op::AllReduce(_) => {
            let width = matcher.dims(v)[0].as_const();
            let fits = width.is_some_and(|n| n <= MAX_ALL_REDUCE_WIDTH as u64);
            operands.extend(&data.operands);
            let parts = matcher.are_f32(&data.operands) && data.operands.len() <= MAX_DEVICES;
            (fits && parts && data.results.contains(&v))
                .then_some(RowSource::AllReduce(data.operands.len()))
        }
        Op::Sum(op) if op.axis == 1 => weighted_sum(matcher, v, data, operands),
        _ => None,
    }
}

fn weighted_sum(
    matcher: &Matcher<'_>,
    v: Value,
    sum: &InstData,
    operands: &mut Vec<Value>,
) -> Option<RowSource> {
    let product = matcher.def(sum.operands[0])?;
    let [parts, by] = *product.operands.as_slice() else {
        return None;
    };
    let whole =
        is_binary(product, BinaryKind::Mul) && matcher.def(parts).or(matcher.def(by)).is_none();
    let [n, k, tokens, one] = matcher.dims(parts);
    let few = k.as_const().is_some_and(|k| k <= MAX_ROUTED_EXPERTS);
    let [m, b, c, d] = matcher.dims(v);
    let rows = m == n && ((b == tokens && c.is_one()) || (b.is_one() && c == tokens));
    operands.extend([parts, by]);
    let same = matcher.dims(parts) == matcher.dims(product.results[0]);
    let fits = whole && few && rows && same && one.is_one() && d.is_one();
    (fits && matcher.is_float(parts) && matcher.is_float(by)).then_some(RowSource::WeightedSum)
}

pub(super) fn read(matcher: &Matcher<'_>) -> Option<FusedLaunch> {
    let last = matcher.last()?;
    let result = *last.results.first()?;
    let mut operands = Vec::new();
    if let Some((norm, by)) = scaled_norm(matcher, last) {
        let Op::Norm(op) = &norm.op else { return None };
        let x = norm.operands[0];
        let of = row_source(matcher, x, &mut operands)?;
        operands.push(by);
        let kept = matcher.def(x).is_some() && matcher.is_read_outside(x);
        let (kept, mut results) = match kept {
            true => (KeepInput::Yes, vec![x]),
            false => (KeepInput::No, Vec::new()),
        };
        results.push(result);
        return Some(FusedLaunch {
            op: FusedOp::NormMul(op.clone(), of, kept),
            operands,
            terms: None,
            results,
        });
    }
    let of = row_source(matcher, result, &mut operands)?;
    Some(FusedLaunch {
        op: FusedOp::MulSumAdd(of),
        operands,
        terms: None,
        results: vec![result],
    })
}

/// Returns candidate sets that end with an addition: alone, and with the instructions that compute one operand.
fn sum_sets(defs: &DefWalker<'_>, v: Value) -> Vec<Vec<Inst>> {
    let (sum, data, mut views) = defs.def(v);
    views.push(sum);
    if !is_binary(data, BinaryKind::Add) {
        return Vec::new();
    }
    let mut out = Vec::new();
    for operand in &data.operands {
        let made = row_source_set(defs, *operand);
        if !made.is_empty() {
            out.push([views.clone(), made].concat());
        }
    }
    out.push(views);
    out
}

fn row_source_set(defs: &DefWalker<'_>, v: Value) -> Vec<Inst> {
    let (inst, data, mut out) = defs.def(v);
    out.push(inst);
    let under = match &data.op {
        Op::Sum(_) => [data.operands[0]].to_vec(),
        Op::Binary(op) if op.kind == BinaryKind::Mul => data.operands.to_vec(),
        _ => return Vec::new(),
    };
    let summed = matches!(data.op, Op::Sum(_));
    let found = under
        .into_iter()
        .map(|v| defs.graph().value(v).def.0)
        .find(|i| {
            let op = &defs.graph().inst(*i).op;
            match summed {
                true => is_binary(defs.graph().inst(*i), BinaryKind::Mul),
                false => matches!(op, Op::Norm(_)),
            }
        });
    match found {
        Some(under) => [out, vec![under]].concat(),
        None => Vec::new(),
    }
}

pub(super) fn propose(defs: &DefWalker<'_>) -> Vec<Vec<Inst>> {
    let (mut long, mut sums, mut short) = (Vec::new(), Vec::new(), Vec::new());
    for (inst, data) in defs.graph().insts() {
        if is_binary(data, BinaryKind::Mul) {
            let norm = data.operands.iter().map(|v| defs.graph().value(*v).def.0);
            for norm in norm.filter(|i| matches!(defs.graph().inst(*i).op, Op::Norm(_))) {
                let own = vec![norm, inst];
                let before = sum_sets(defs, defs.graph().inst(norm).operands[0]);
                long.extend(before.into_iter().map(|b| [b, own.clone()].concat()));
                short.push(own);
            }
        }
        if is_binary(data, BinaryKind::Add) {
            let before = sum_sets(defs, data.results[0]);
            sums.extend(before.into_iter().filter(|s| s.len() > 1));
        }
        if matches!(data.op, Op::Sum(_)) {
            short.push(row_source_set(defs, data.results[0]));
        }
    }
    long.extend(sums);
    long.extend(short);
    long
}
