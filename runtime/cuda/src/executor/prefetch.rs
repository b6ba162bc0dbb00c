//! Prefetches weights of the next launch into L2 during a row reduction and norm, when most of the device is idle.

use std::collections::BTreeMap;

use tpc_ir::program::{Program, Step};
use tpc_ir::{Launch, Place, Value};

use super::fuse::{FusedLaunch, Role};
use super::roles::{format_of, roles};
use crate::kernels::FusedOp;
use crate::planes::Planes;

#[derive(Debug, Default)]
pub(super) struct PrefetchPlan(BTreeMap<(Launch, Place), Value>);

impl PrefetchPlan {
    pub(super) fn new(program: &Program) -> PrefetchPlan {
        let mut out = BTreeMap::new();
        for queue in program.phases.iter().flat_map(|phase| &phase.queues) {
            let mut before: Option<Launch> = None;
            for step in &queue.steps {
                let Step::Launch(launch) = *step else {
                    continue;
                };
                let own = fused_launch(program, launch, queue.place);
                if let (Some(before), Some(weight)) =
                    (before, own.as_ref().and_then(|t| weight(program, t)))
                {
                    out.insert((before, queue.place), weight);
                }
                let able = matches!(
                    own,
                    Some(FusedLaunch {
                        op: FusedOp::NormMul(..),
                        ..
                    })
                );
                before = able.then_some(launch);
            }
        }
        PrefetchPlan(out)
    }

    pub(super) fn weight(&self, launch: Launch, place: Place) -> Option<Value> {
        self.0.get(&(launch, place)).copied()
    }
}

fn fused_launch(program: &Program, launch: Launch, place: Place) -> Option<FusedLaunch> {
    let own = roles(program, launch)?
        .into_iter()
        .find(|(at, _)| *at == place);
    match own {
        Some((_, Role::Fused(fused))) => Some(fused),
        Some((_, Role::Share)) | None => None,
    }
}

/// Returns the first weight in planes of a dense product. Expert weights are unknown before the router has run.
fn weight(program: &Program, fused: &FusedLaunch) -> Option<Value> {
    let known = matches!(
        fused.op,
        FusedOp::MulMatAdd | FusedOp::MulMatGlu(_) | FusedOp::GroupedMulMat(_)
    );
    let planes = |v: &&Value| format_of(program, **v) == Planes::FORMAT;
    fused
        .operands
        .iter()
        .filter(|_| known)
        .find(planes)
        .copied()
}
