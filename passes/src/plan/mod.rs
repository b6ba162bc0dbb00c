//! Planning: which factors to split over the devices of a group, and how.

mod choose;
mod cost;
mod estimate;
mod options;
mod price;
mod ranges;
mod region;
mod search;
mod topology;

pub use choose::{Choice, choose};
pub use cost::{Draws, Work, Workload, all_reduce_us, element_bytes, expected_max};
pub use estimate::{Estimate, estimate};
pub use options::{Refusal, SplitOption, options_for, refusal};
pub use price::{Price, Pricer};
pub use ranges::{ChainCuts, chain, proportional};
pub use region::{Region, regions};
pub use topology::{DeviceProfile, Link, PairLink, Topology, TopologyError};

use tpc_ir::{Graph, Op};

use crate::factors::{Analysis, Factors};
use crate::shard::Users;

/// What a plan is asked for.
#[derive(Clone, Debug)]
pub struct PlanRequest {
    /// The machine.
    pub topology: Topology,
    /// The batches.
    pub workload: Workload,
    /// The devices' names, in order; their number is the size of the group.
    pub devices: Vec<String>,
    /// The devices' shares, in proportion; `None` for shares by bandwidth.
    pub tensor_split: Option<Vec<f64>>,
    /// Price of a byte that a device holds, in reads of a byte: [`Workload::MEMORY_PRICE`], or more where memory is
    /// short.
    pub memory_price: f64,
}

impl PlanRequest {
    /// A request for these devices with shares by bandwidth.
    pub fn new(topology: Topology, workload: Workload, devices: Vec<String>) -> PlanRequest {
        let memory_price = Workload::MEMORY_PRICE;
        PlanRequest {
            topology,
            workload,
            devices,
            tensor_split: None,
            memory_price,
        }
    }

    /// The devices' shares of the work.
    pub fn shares(&self) -> Vec<f64> {
        match &self.tensor_split {
            Some(s) => (0..self.devices.len())
                .map(|i| s.get(i).copied().unwrap_or(0.0))
                .collect(),
            None => (0..self.devices.len())
                .map(|i| self.topology.device(i).bandwidth)
                .collect(),
        }
    }
}

/// A graph with its factors and the splits chosen for it.
#[derive(Clone, Debug)]
pub struct Planned {
    /// Its factors.
    pub factors: Factors,
    /// Tables of them.
    pub analysis: Analysis,
    /// Users of its values.
    pub users: Users,
    /// What was planned as a unit, in program order.
    pub regions: Vec<Region>,
    /// The choice.
    pub choice: Choice,
}

/// Chooses splits for `graph`, which must be valid.
pub fn plan(graph: &Graph, request: &PlanRequest) -> Planned {
    let factors = Factors::infer(graph);
    let analysis = Analysis::of(graph, &factors);
    let users = Users::of_graph(graph);
    let regions = regions(graph, &analysis);
    let shares = request.shares();
    let mut matrices = (0_u64, 0.0);
    for (_, data) in graph.insts() {
        let Op::Weight(_) = data.op else { continue };
        let ty = &graph.value(data.results[0]).ty;
        if !ty.dims[1].is_one() {
            let n = ty.elements().and_then(|d| d.as_const()).unwrap_or(0);
            matrices = (
                matrices.0 + 1,
                matrices.1 + n as f64 * element_bytes(ty.dtype),
            );
        }
    }
    let mean_us =
        matrices.1 / (matrices.0.max(1) as f64) / request.topology.device(0).bandwidth * 1e6;
    let pricer = Pricer {
        graph,
        factors: &factors,
        analysis: &analysis,
        users: &users,
        topology: &request.topology,
        workload: &request.workload,
        shares: &shares,
        memory_price: request.memory_price,
        // A tenth of reading a mean matrix.
        collective_cap: mean_us / 10.0,
        draws: Draws::default(),
    };
    let choice = if request.devices.len() > 1 {
        choose(&pricer, &regions)
    } else {
        Choice::none()
    };
    Planned {
        factors,
        analysis,
        users,
        regions,
        choice,
    }
}
