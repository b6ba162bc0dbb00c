use tpc_ir::op::{ExpertShare, Extents, Slot, Work};
use tpc_ir::{Bindings, DType, Op, TensorType};

use super::ExpertLoad;

pub(crate) trait Parts {
    fn ty(&self, slot: Slot) -> &TensorType;
    fn elements(&self, slot: Slot) -> f64;
    fn whole(&self, slot: Slot) -> f64;
    fn stored_bytes(&self, operand: usize) -> f64;
    /// Returns the number of experts of each device, and of this device; `None` unless axis 2 of operand 0 is split.
    fn experts(&self) -> Option<(Vec<u64>, u64)>;
}

/// Returns the arithmetic and memory traffic of an op on one device, for one batch. The op has at least one result.
pub(crate) fn work(op: &Op, parts: &impl Parts, b: &Bindings, expert_load: &ExpertLoad) -> Work {
    op.work(&BatchParts {
        parts,
        batch: b,
        expert_load,
    })
}

struct BatchParts<'a, P> {
    parts: &'a P,
    batch: &'a Bindings,
    expert_load: &'a ExpertLoad,
}

impl<P: Parts> Extents for BatchParts<'_, P> {
    fn dtype(&self, slot: Slot) -> DType {
        self.parts.ty(slot).dtype
    }

    fn size(&self, slot: Slot, axis: usize) -> Option<u64> {
        self.parts.ty(slot).dims[axis].eval(self.batch)
    }

    fn elements(&self, slot: Slot) -> f64 {
        self.parts.elements(slot)
    }

    fn total_elements(&self, slot: Slot) -> f64 {
        self.parts.whole(slot)
    }

    fn stored_bytes(&self, operand: usize) -> f64 {
        self.parts.stored_bytes(operand)
    }

    fn expert_load(&self, draws: f64) -> Option<ExpertShare> {
        let (lens, own) = self.parts.experts()?;
        Some(ExpertShare {
            busiest: self.expert_load.expected_max_load(draws as u64, lens),
            own: own as f64,
        })
    }
}
