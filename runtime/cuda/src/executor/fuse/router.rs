//! Matches the expert router: scores, choice and weights.

use tpc_ir::op::{BinaryKind, UnaryKind};
use tpc_ir::{Inst, InstData, Op, Value};

use super::FusedLaunch;
use super::matcher::{DefWalker, Matcher, is_binary};
use crate::kernels::{FusedOp, MAX_ROUTED_EXPERTS, Router, Scores, WeightAxis, WeightNorm};

fn scores(matcher: &Matcher<'_>, v: Value) -> Option<(Scores, Value)> {
    let Some(data) = matcher.def(v) else {
        return Some((Scores::Logits, v));
    };
    let kind = match &data.op {
        Op::SoftMax(op) if is_plain(op) && data.operands.len() == 1 => Scores::SoftMax,
        Op::Unary(op) if op.kind == UnaryKind::Sigmoid => Scores::Sigmoid,
        _ => return None,
    };
    let x = data.operands[0];
    matcher.def(x).is_none().then_some((kind, x))
}

fn is_plain(op: &tpc_ir::op::SoftMax) -> bool {
    op.scale.to_bits() == 1.0_f32.to_bits() && op.max_bias == 0.0 && op.heads.is_none()
}

fn weights<'a>(matcher: &Matcher<'a>, data: &'a InstData) -> Option<(WeightNorm, &'a InstData)> {
    match &data.op {
        Op::GetRows(op) if op.window.is_none() => Some((WeightNorm::None, data)),
        Op::SoftMax(op) if is_plain(op) && data.operands.len() == 1 => {
            Some((WeightNorm::SoftMax, matcher.def(data.operands[0])?))
        }
        Op::Binary(op) if op.kind == BinaryKind::Div => {
            let chosen = matcher.def(data.operands[0])?;
            let mut sum = matcher.def(data.operands[1])?;
            let mut clamp = None;
            if let Op::Clamp(op) = &sum.op {
                clamp = Some(op.clone());
                sum = matcher.def(sum.operands[0])?;
            }
            let of = matches!(&sum.op, Op::Sum(op) if op.axis == 1 || op.axis == 0);
            let same = of && matcher.def(sum.operands[0])?.results == chosen.results;
            let alone = matcher
                .dims(sum.results[0])
                .iter()
                .filter(|d| !d.is_one())
                .count()
                <= 1;
            (same && alone).then_some((WeightNorm::Sum(clamp), chosen))
        }
        _ => None,
    }
}

pub(super) fn read(matcher: &Matcher<'_>) -> Option<FusedLaunch> {
    let last = matcher.last()?;
    let result = last.results[0];
    let of = matcher.def(result)?;
    let (scale, data) = match &of.op {
        Op::Scale(op) => (Some(op.clone()), matcher.def(of.operands[0])?),
        _ => (None, of),
    };
    let (weights, rows) = weights(matcher, data)?;
    let (Op::GetRows(op), [scored, ids]) = (&rows.op, rows.operands.as_slice()) else {
        return None;
    };
    let choice = matcher.def(*ids)?;
    let Op::TopK(top) = &choice.op else {
        return None;
    };
    let (kind, x) = scores(matcher, *scored)?;
    let (mut operands, mut by) = (vec![x], choice.operands[0]);
    let mut biased = false;
    if let Some(sum) = matcher.def(by)
        && is_binary(sum, BinaryKind::Add)
    {
        (by, biased) = (sum.operands[0], true);
        operands.push(sum.operands[1]);
    }
    let same = scores(matcher, by).map(|(kind, x)| (kind, base_value(matcher, x)))
        == Some((kind, base_value(matcher, x)));
    let [_, tokens, one, two] = matcher.dims(base_value(matcher, x));
    let flat = one.is_one() && two.is_one() && *ids == choice.results[0];
    // The weights of a token are along axis 1 or axis 0.
    let k = |d: &tpc_ir::Dim| d.as_const() == Some(top.k);
    let [a, b, c, d] = matcher.dims(result);
    let along = a.is_one() && k(b) && c == tokens && d.is_one();
    let whole = along || (k(a) && b == tokens && c.is_one() && d.is_one());
    operands[0] = base_value(matcher, x);
    let fits = same && flat && whole && op.window.is_none() && top.k <= MAX_ROUTED_EXPERTS;
    let values = [operands[0], result];
    let kinds = matcher.are_f32(&values) && operands.iter().all(|v| matcher.is_float(*v));
    (fits && kinds).then(|| FusedLaunch {
        op: FusedOp::Router(Router {
            scores: kind,
            has_bias: biased,
            weights,
            along: if along {
                WeightAxis::Axis1
            } else {
                WeightAxis::Axis0
            },
            scale,
        }),
        operands,
        terms: None,
        results: vec![*ids, result],
    })
}

fn base_value(matcher: &Matcher<'_>, v: Value) -> Value {
    let inst = matcher.graph.value(v).def.0;
    if !matches!(matcher.graph.inst(inst).op, Op::Reshape(_)) {
        return v;
    }
    if matcher.insts.contains(&inst) {
        matcher.visit(inst);
    }
    base_value(matcher, matcher.graph.inst(inst).operands[0])
}

/// Proposes sets around the choice of experts: scores, and ops on the weights.
pub(super) fn propose(defs: &DefWalker<'_>) -> Vec<Vec<Inst>> {
    let mut out = Vec::new();
    for (choice, data) in defs.graph().insts() {
        if !matches!(data.op, Op::TopK(_)) {
            continue;
        }
        let score = |d: &InstData| {
            let sigmoid = matches!(&d.op, Op::Unary(op) if op.kind == UnaryKind::Sigmoid);
            sigmoid || matches!(d.op, Op::SoftMax(_))
        };
        let biased = |d: &InstData| score(d) || is_binary(d, BinaryKind::Add);
        let within: [&dyn Fn(&InstData) -> bool; 2] = [&biased, &score];
        let rows = defs.context.users(data.results[0]).iter();
        let mut rows = rows.filter(|i| matches!(defs.graph().inst(**i).op, Op::GetRows(_)));
        let Some(rows) = rows.next() else { continue };
        for within in within {
            let mut core = defs.closure(data.operands[0], within);
            core.push(choice);
            let (scored, _, views) = defs.def(defs.graph().inst(*rows).operands[0]);
            if core.contains(&scored) {
                core.extend(views);
            }
            core.push(*rows);
            let mut sets = vec![core.clone()];
            extend_tail(defs, *rows, core, &mut sets);
            sets.reverse();
            out.extend(sets);
        }
    }
    out
}

fn extend_tail(defs: &DefWalker<'_>, from: Inst, mut set: Vec<Inst>, sets: &mut Vec<Vec<Inst>>) {
    /// The maximum number of ops: views, a sum, a clamp, a quotient and a scale.
    const MAX_TAIL: usize = 8;
    let mut ends = vec![from];
    for _ in 0..MAX_TAIL {
        let users = ends
            .iter()
            .flat_map(|i| defs.context.users(defs.graph().inst(*i).results[0]));
        let mut next: Vec<Inst> = users.copied().filter(|i| !set.contains(i)).collect();
        next.sort_unstable();
        next.dedup();
        next.retain(|i| {
            let data = defs.graph().inst(*i);
            let kind = matches!(
                data.op,
                Op::Reshape(_) | Op::Sum(_) | Op::Clamp(_) | Op::Scale(_) | Op::SoftMax(_)
            );
            kind || is_binary(data, BinaryKind::Div)
        });
        if next.is_empty() {
            return;
        }
        set.extend(&next);
        sets.push(set.clone());
        ends.extend(next);
    }
}
