//! Two products of the same activations, of weights or of experts, and the gate over them.

use tpc_ir::op::Glu;
use tpc_ir::{Inst, InstData, Op, Value};

use super::Together;
use super::set::{Set, Up};
use crate::kernels::Fused;

/// A product, and what is added to it for each expert.
pub(super) struct OfExperts<'a> {
    pub(super) product: &'a InstData,
    pub(super) more: Option<Value>,
}

/// The product that ends with an instruction of the set.
pub(super) fn of_experts<'a>(set: &Set<'a>, data: &'a InstData) -> Option<OfExperts<'a>> {
    let Op::AddId(add) = &data.op else {
        return set.is_product(data).then_some(OfExperts {
            product: data,
            more: None,
        });
    };
    let product = set.of(data.operands[0])?;
    let Op::MulMatId(op) = &product.op else {
        return None;
    };
    let same = op.window == add.window && product.operands[2] == data.operands[2];
    let plain = set.is_float(data.operands[1]) && set.are_f32(&data.results);
    (same && plain && set.is_product(product)).then_some(OfExperts {
        product,
        more: Some(data.operands[1]),
    })
}

/// A product whose first half of the rows gates the second.
fn halves(set: &Set<'_>, last: &InstData, glu: &Glu) -> Option<Together> {
    let [both] = *last.operands.as_slice() else {
        return None;
    };
    let product = set.of(both)?;
    let result = last.results[0];
    let of_weight = matches!(product.op, Op::MulMat(_)) && set.is_product(product);
    let same = set.dims(product.results[0]) == set.dims(both);
    (of_weight && same && set.are_f32(&[result])).then(|| Together {
        fused: Fused::Gated(glu.clone()),
        operands: product.operands.to_vec(),
        terms: Some(1),
        results: vec![result],
    })
}

pub(super) fn read(set: &Set<'_>) -> Option<Together> {
    let last = set.last()?;
    if let Op::Glu(glu) = &last.op
        && let [_] = last.operands.as_slice()
    {
        return halves(set, last, glu);
    }
    let (Op::Glu(glu), [gate, up]) = (&last.op, last.operands.as_slice()) else {
        return None;
    };
    let (gate, up) = (
        of_experts(set, set.of(*gate)?)?,
        of_experts(set, set.of(*up)?)?,
    );
    let more: Vec<Value> = [gate.more, up.more].into_iter().flatten().collect();
    let (gate, up) = (gate.product, up.product);
    let weight = |data: &InstData| &set.graph.value(data.operands[0]).ty;
    let alike = weight(gate) == weight(up) && more.len() != 1;
    if !alike || gate.op != up.op || gate.operands[1..] != up.operands[1..] {
        return None;
    }
    let result = last.results[0];
    let types = more.windows(2).all(|m| set.dtype(m[0]) == set.dtype(m[1]));
    let fits = set.are_f32(&[result]) && set.dims(result) == set.dims(gate.results[0]);
    let mut operands = vec![gate.operands[0], up.operands[0]];
    operands.extend(&gate.operands[1..]);
    operands.extend(more);
    let fused = match &gate.op {
        Op::MulMatId(of) => Fused::GatedExperts(glu.clone(), of.clone()),
        _ => Fused::Gated(glu.clone()),
    };
    (fits && types).then(|| Together {
        fused,
        operands,
        terms: Some(2),
        results: vec![result],
    })
}

/// A product, or one of experts with what is added to it.
fn under(up: &Up<'_>, v: Value) -> Vec<Inst> {
    let graph = up.graph();
    let inst = graph.value(v).def.0;
    let data = graph.inst(inst);
    match data.op {
        Op::MulMat(_) | Op::MulMatId(_) => vec![inst],
        Op::AddId(_) => vec![graph.value(data.operands[0]).def.0, inst],
        _ => Vec::new(),
    }
}

pub(super) fn propose(up: &Up<'_>) -> Vec<Vec<Inst>> {
    let mut out = Vec::new();
    for (inst, data) in up.graph().insts() {
        if let (Op::Glu(_), [a, b]) = (&data.op, data.operands.as_slice()) {
            let (a, b) = (under(up, *a), under(up, *b));
            if !a.is_empty() && !b.is_empty() {
                out.push([a, b, vec![inst]].concat());
            }
        }
        if let (Op::Glu(_), [both]) = (&data.op, data.operands.as_slice()) {
            out.push(vec![up.graph().value(*both).def.0, inst]);
        }
    }
    out
}
