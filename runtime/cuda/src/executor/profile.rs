//! Times of kernels, whose launches run one after another.

use std::time::Duration;

use tpc_runtime::KernelTime;

use super::launches::Launches;
use super::phase_graph::KernelPosition;

/// The time of each kernel since the last call of [`Profile::take`].
#[derive(Debug, Default)]
pub(super) struct Profile(Vec<KernelTime>);

/// Returns the name of a node. Kernels of the first device have their own names.
fn name(launches: &Launches, at: Option<KernelPosition>, shape: usize) -> String {
    match at {
        None => "host ops".to_owned(),
        Some(at) if at.device > 0 => "other devices".to_owned(),
        Some(at) => {
            let kernel = launches
                .kernel_run(at)
                .and_then(|run| run.kernels[shape].as_ref());
            kernel.map_or_else(String::new, |k| k.instance.name().to_owned())
        }
    }
}

fn weight_bytes(launches: &Launches, at: Option<KernelPosition>, shape: usize) -> u64 {
    let run = at.filter(|at| at.device == 0);
    let run = run.and_then(|at| launches.kernel_run(at));
    run.and_then(|run| run.weights.get(shape))
        .map_or(0, |read| read.bytes)
}

impl Profile {
    /// Adds the times of a graph's nodes.
    pub(super) fn add(
        &mut self,
        (launches, shape): (&Launches, usize),
        nodes: &[Option<KernelPosition>],
        times: &[Duration],
    ) {
        for (at, time) in nodes.iter().zip(times) {
            let kernel = KernelTime {
                kernel: name(launches, *at, shape),
                calls: 1,
                time: *time,
                bytes: weight_bytes(launches, *at, shape),
                operations: 0,
            };
            KernelTime::add(&mut self.0, vec![kernel]);
        }
    }

    /// Returns the times since the last call.
    pub(super) fn take(&mut self) -> Vec<KernelTime> {
        std::mem::take(&mut self.0)
    }
}
