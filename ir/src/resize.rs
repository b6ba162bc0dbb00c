//! Ops for other sizes.

use crate::dims::Dim;
use crate::entity::Value;
use crate::graph::{Graph, InstData};
use crate::op::{NewSizes, Op, Slot};
use crate::types::{RANK, TensorType};

/// The new sizes of a graph's values.
pub trait Sizes {
    /// Returns the sizes of a value.
    fn dims(&self, v: Value) -> [Dim; RANK];

    /// Returns the new start, along `axis` of `v`, of the `len` indices from `start`.
    fn start(&self, v: Value, axis: usize, start: &Dim, len: &Dim) -> Dim;
}

/// Returns the op of an instruction with its sizes changed.
pub fn resize(graph: &Graph, data: &InstData, sizes: &dyn Sizes) -> Op {
    data.op.resize(&OfInst { graph, data, sizes })
}

struct OfInst<'a> {
    graph: &'a Graph,
    data: &'a InstData,
    sizes: &'a dyn Sizes,
}

impl OfInst<'_> {
    fn value(&self, slot: Slot) -> Value {
        match slot {
            Slot::Operand(i) => self.data.operands[i],
            Slot::Result(i) => self.data.results[i],
        }
    }
}

impl NewSizes for OfInst<'_> {
    fn old(&self, slot: Slot) -> &TensorType {
        &self.graph.value(self.value(slot)).ty
    }

    fn dims(&self, slot: Slot) -> [Dim; RANK] {
        self.sizes.dims(self.value(slot))
    }

    fn start(&self, operand: usize, axis: usize, start: &Dim, len: &Dim) -> Dim {
        let v = self.value(Slot::Operand(operand));
        self.sizes.start(v, axis, start, len)
    }
}
