//! Matches gated activations of two products of the same activations, for dense layers and experts.

use tpc_ir::op::Glu;
use tpc_ir::{Inst, InstData, Op, Value};

use super::FusedLaunch;
use super::matcher::{DefWalker, Matcher};
use crate::kernels::FusedOp;

pub(super) struct ExpertProduct<'a> {
    pub(super) product: &'a InstData,
    pub(super) more: Option<Value>,
}

pub(super) fn expert_product<'a>(
    matcher: &Matcher<'a>,
    data: &'a InstData,
) -> Option<ExpertProduct<'a>> {
    let Op::AddId(add) = &data.op else {
        return matcher.is_product(data).then_some(ExpertProduct {
            product: data,
            more: None,
        });
    };
    let product = matcher.def(data.operands[0])?;
    let Op::MulMatId(op) = &product.op else {
        return None;
    };
    let same = op.window == add.window && product.operands[2] == data.operands[2];
    let plain = matcher.is_float(data.operands[1]) && matcher.are_f32(&data.results);
    (same && plain && matcher.is_product(product)).then_some(ExpertProduct {
        product,
        more: Some(data.operands[1]),
    })
}

/// Returns the kernel of a product whose weight has the gate in its first half of rows.
fn split_weight(matcher: &Matcher<'_>, last: &InstData, glu: &Glu) -> Option<FusedLaunch> {
    let [both] = *last.operands.as_slice() else {
        return None;
    };
    let product = matcher.def(both)?;
    let result = last.results[0];
    let of_weight = matches!(product.op, Op::MulMat(_)) && matcher.is_product(product);
    let same = matcher.dims(product.results[0]) == matcher.dims(both);
    (of_weight && same && matcher.are_f32(&[result])).then(|| FusedLaunch {
        op: FusedOp::MulMatGlu(glu.clone()),
        operands: product.operands.to_vec(),
        terms: Some(1),
        results: vec![result],
    })
}

pub(super) fn read(matcher: &Matcher<'_>) -> Option<FusedLaunch> {
    let last = matcher.last()?;
    if let Op::Glu(glu) = &last.op
        && let [_] = last.operands.as_slice()
    {
        return split_weight(matcher, last, glu);
    }
    let (Op::Glu(glu), [gate, up]) = (&last.op, last.operands.as_slice()) else {
        return None;
    };
    let (gate, up) = (
        expert_product(matcher, matcher.def(*gate)?)?,
        expert_product(matcher, matcher.def(*up)?)?,
    );
    let more: Vec<Value> = [gate.more, up.more].into_iter().flatten().collect();
    let (gate, up) = (gate.product, up.product);
    let weight = |data: &InstData| &matcher.graph.value(data.operands[0]).ty;
    let alike = weight(gate) == weight(up) && more.len() != 1;
    if !alike || gate.op != up.op || gate.operands[1..] != up.operands[1..] {
        return None;
    }
    let result = last.results[0];
    let types = more
        .windows(2)
        .all(|m| matcher.dtype(m[0]) == matcher.dtype(m[1]));
    let fits = matcher.are_f32(&[result]) && matcher.dims(result) == matcher.dims(gate.results[0]);
    let mut operands = vec![gate.operands[0], up.operands[0]];
    operands.extend(&gate.operands[1..]);
    operands.extend(more);
    let op = match &gate.op {
        Op::MulMatId(of) => FusedOp::MulMatIdGlu(glu.clone(), of.clone()),
        _ => FusedOp::MulMatGlu(glu.clone()),
    };
    (fits && types).then(|| FusedLaunch {
        op,
        operands,
        terms: Some(2),
        results: vec![result],
    })
}

fn product_insts(defs: &DefWalker<'_>, v: Value) -> Vec<Inst> {
    let graph = defs.graph();
    let inst = graph.value(v).def.0;
    let data = graph.inst(inst);
    match data.op {
        Op::MulMat(_) | Op::MulMatId(_) => vec![inst],
        Op::AddId(_) => vec![graph.value(data.operands[0]).def.0, inst],
        _ => Vec::new(),
    }
}

pub(super) fn propose(defs: &DefWalker<'_>) -> Vec<Vec<Inst>> {
    let mut out = Vec::new();
    for (inst, data) in defs.graph().insts() {
        if let (Op::Glu(_), [a, b]) = (&data.op, data.operands.as_slice()) {
            let (a, b) = (product_insts(defs, *a), product_insts(defs, *b));
            if !a.is_empty() && !b.is_empty() {
                out.push([a, b, vec![inst]].concat());
            }
        }
        if let (Op::Glu(_), [both]) = (&data.op, data.operands.as_slice()) {
            out.push(vec![defs.graph().value(*both).def.0, inst]);
        }
    }
    out
}
