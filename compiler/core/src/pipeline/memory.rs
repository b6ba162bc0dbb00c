use std::collections::BTreeMap;
use std::sync::OnceLock;

use tpc_ir::program::{BatchShape, Target};
use tpc_ir::{Bindings, Device, Place, Symbol, Verified, stage};
use tpc_passes::footprint::{Footprint, footprints};
use tpc_passes::machine::Workload;
use tpc_passes::plan::PlanRequest;

/// Returns the sizes of the largest prompt batch with a full cache.
pub(super) fn memory_batch(workload: &Workload) -> Bindings {
    let most = workload.prefill;
    most.with(Symbol::NKv, most.get(Symbol::NCtx))
        .with(Symbol::NKvSwa, most.get(Symbol::NCtxSwa))
}

pub(super) fn shapes(workload: &Workload) -> Vec<BatchShape> {
    let most = memory_batch(workload);
    let decode = [Symbol::NKv, Symbol::NKvSwa]
        .into_iter()
        .fold(workload.decode, |b, s| b.with(s, most.get(s)));
    let mut shapes: Vec<BatchShape> = [decode, most].map(|most| BatchShape { most }).into();
    shapes.dedup();
    shapes
}

/// The memory of programs, computed at the first access.
#[derive(Clone, Debug)]
pub(super) struct Memory {
    shapes: Vec<BatchShape>,
    storage: &'static dyn Target,
    found: OnceLock<BTreeMap<Place, Footprint>>,
    /// True if the memory does not depend on programs and shapes.
    is_known: bool,
}

impl Memory {
    pub(super) const fn new(shapes: Vec<BatchShape>, storage: &'static dyn Target) -> Memory {
        Memory {
            shapes,
            storage,
            found: OnceLock::new(),
            is_known: false,
        }
    }

    /// Replaces the memory by an engine's footprints. Programs and shapes then have no effect.
    pub(super) fn with_footprints(self, found: BTreeMap<Place, Footprint>) -> Memory {
        Memory {
            found: OnceLock::from(found),
            is_known: true,
            ..self
        }
    }

    /// Returns the memory of other programs, for a workload.
    pub(super) fn of_others(&self, workload: &Workload) -> Memory {
        Memory::new(shapes(workload), self.storage)
    }

    pub(super) fn with(&self, shape: BatchShape) -> Memory {
        if self.is_known {
            return self.clone();
        }
        Memory::new(vec![shape], self.storage)
    }

    pub(super) fn footprints(
        &self,
        programs: &Verified<stage::Programs>,
    ) -> &BTreeMap<Place, Footprint> {
        self.found
            .get_or_init(|| footprints(programs, &self.shapes, self.storage))
    }
}

pub(super) fn fits(
    programs: &Verified<stage::Programs>,
    request: &PlanRequest,
    memory: &Memory,
) -> bool {
    let (topology, devices) = (&request.topology, request.devices.len());
    if !topology.knows_memory(devices) {
        return true;
    }
    let prints = memory.footprints(programs);
    let bytes = |place| prints.get(&place).map_or(0, Footprint::total);
    let each = (0..devices).map(|d| bytes(Place::Device(Device::new(d))));
    topology.has_room(&each.collect::<Vec<_>>(), bytes(Place::Host))
}
