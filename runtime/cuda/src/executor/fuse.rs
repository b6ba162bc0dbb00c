//! The ops that a kernel computes at once, found in the instructions that a launch covers.

use tpc_ir::op::{BinaryKind, Glu};
use tpc_ir::program::StoredFormat;
use tpc_ir::{DType, Graph, Inst, InstData, Op, Value};

use crate::kernels::Fused;

/// What a launch of several instructions does, with the values that it reads and the one that it writes.
pub(super) struct Together {
    pub(super) fused: Fused,
    /// The operands; the activations of products come last but for what is added.
    pub(super) operands: Vec<Value>,
    /// Which of the operands are activations in terms.
    pub(super) terms: Option<usize>,
    pub(super) result: Value,
}

/// The instructions that share a launch.
struct Shared<'a> {
    graph: &'a Graph,
    /// All but the last.
    before: &'a [Inst],
    last: &'a InstData,
    result: Value,
    format: &'a dyn Fn(Value) -> StoredFormat,
}

/// The ops of these instructions, in program order, as one kernel computes them; `None` where there is none.
pub(super) fn together(
    graph: &Graph,
    insts: &[Inst],
    format: &dyn Fn(Value) -> StoredFormat,
) -> Option<Together> {
    let (last, before) = insts.split_last()?;
    let last = graph.inst(*last);
    let [result] = *last.results.as_slice() else {
        return None;
    };
    let shared = Shared {
        graph,
        before,
        last,
        result,
        format,
    };
    if graph.value(result).ty.dtype != DType::F32 {
        return None;
    }
    match (&last.op, before.len()) {
        (Op::Binary(op), 1) => shared.binary(op.kind),
        (Op::Glu(glu), 2) => shared.gated(glu),
        _ => None,
    }
}

impl Shared<'_> {
    /// The instruction among those before the last that computes a value.
    fn of(&self, v: Value) -> Option<&InstData> {
        let inst = self.graph.value(v).def.0;
        self.before.contains(&inst).then(|| self.graph.inst(inst))
    }

    fn is_real(&self, v: Value) -> bool {
        !self.graph.value(v).ty.dtype.is_integer()
    }

    /// Whether it is a product with a weight in planes.
    fn is_product(&self, inst: &InstData) -> bool {
        let float = self.graph.value(inst.results[0]).ty.dtype == DType::F32;
        matches!(inst.op, Op::MulMat(_))
            && float
            && (self.format)(inst.operands[0]) == StoredFormat::Planes
            && self.is_real(inst.operands[1])
    }

    /// A norm and a factor, or a product and a summand.
    fn binary(&self, kind: BinaryKind) -> Option<Together> {
        let [a, b] = *self.last.operands.as_slice() else {
            return None;
        };
        let sizes = |v: Value| &self.graph.value(v).ty.dims;
        // The first operand has the result's sizes, the second repeats over them.
        let (inner, other) = match (self.of(a), self.of(b)) {
            (Some(inner), None) => (inner, b),
            (None, Some(inner)) if sizes(b) == sizes(self.result) => (inner, a),
            _ => return None,
        };
        if !self.is_real(other) || (self.format)(other) != StoredFormat::File {
            return None;
        }
        let (fused, mut operands, terms) = match (&inner.op, kind) {
            (Op::Norm(norm), BinaryKind::Mul) if self.is_real(inner.operands[0]) => {
                (Fused::NormMul(norm.clone()), vec![inner.operands[0]], None)
            }
            (Op::MulMat(_), BinaryKind::Add) if self.is_product(inner) => {
                (Fused::MulMatAdd, inner.operands.clone(), Some(1))
            }
            _ => return None,
        };
        operands.push(other);
        Some(Together {
            fused,
            operands,
            terms,
            result: self.result,
        })
    }

    /// Two products of the same activations, and the gate over them.
    fn gated(&self, glu: &Glu) -> Option<Together> {
        let [gate, up] = *self.last.operands.as_slice() else {
            return None;
        };
        let (gate, up) = (self.of(gate)?, self.of(up)?);
        let weight = |inst: &InstData| &self.graph.value(inst.operands[0]).ty;
        let alike = self.is_product(gate) && self.is_product(up) && weight(gate) == weight(up);
        (alike && gate.operands[1] == up.operands[1]).then(|| Together {
            fused: Fused::Gated(glu.clone()),
            operands: vec![gate.operands[0], up.operands[0], gate.operands[1]],
            terms: Some(2),
            result: self.result,
        })
    }
}
