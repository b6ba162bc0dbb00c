//! Planning: which factors to split over the devices of a group, and how.

mod alternative;
mod choose;
mod estimate;
#[cfg(test)]
mod exhaustive;
mod floor;
mod options;
mod price;
mod ranges;
mod region;
mod search;
mod shares;
mod timeline;
mod why;

pub use alternative::Cost;
pub use choose::{Choice, choose};
pub use estimate::{Estimate, collectives_us, estimate};
pub use options::{Granules, Refusal, SplitOption, options_for, refusal};
pub use price::{Price, Pricer};
pub use ranges::{ChainCuts, chain, proportional};
pub use region::{Region, regions};
pub use timeline::{Event, is_copy_of_input, timeline};
pub use why::{FactorFacts, FactorWhy, Forbidden, Verdict, Why, facts, why};

use tpc_ir::{Graph, Group, Op};

use crate::factors::{Analysis, Factors};
use crate::machine::{DeviceProfile, ExpertLoad, Topology, Workload, element_bytes};
use crate::place::{Homes, Placed, place};
use crate::users::Users;

/// What a plan is asked for.
#[derive(Clone, Debug)]
pub struct PlanRequest {
    /// The machine.
    pub topology: Topology,
    /// The batches.
    pub workload: Workload,
    /// The devices' names, in order.
    pub devices: Vec<String>,
    /// Where the parts of the model live.
    pub homes: Homes,
    /// The devices' shares, in proportion; `None` for shares by bandwidth.
    pub tensor_split: Option<Vec<f64>>,
    /// Price of a byte that a device holds, in reads of a byte: [`Workload::MEMORY_PRICE`], or more where memory is
    /// short.
    pub memory_price: f64,
}

impl PlanRequest {
    /// A request for one stage of these devices with shares by bandwidth.
    pub fn new(topology: Topology, workload: Workload, devices: Vec<String>) -> PlanRequest {
        PlanRequest {
            topology,
            workload,
            homes: Homes::together(devices.len()),
            devices,
            tensor_split: None,
            memory_price: Workload::MEMORY_PRICE,
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

    /// The shares of a stage's devices; equal ones where none of them has any.
    pub fn stage_shares(&self, stage: usize) -> Vec<f64> {
        let all = self.shares();
        let shares: Vec<f64> = self.homes.stages[stage].iter().map(|&d| all[d]).collect();
        if shares.iter().all(|&s| s <= 0.0) {
            return vec![1.0; shares.len()];
        }
        shares
    }
}

/// A placed graph with its factors and the splits chosen for it.
#[derive(Clone, Debug)]
pub struct Planned {
    /// The graph, with places and copies.
    pub graph: Graph,
    /// Its factors.
    pub factors: Factors,
    /// Tables of them.
    pub analysis: Analysis,
    /// Users of its values.
    pub users: Users,
    /// What was planned as a unit, in program order of each group.
    pub regions: Vec<Region>,
    /// The choice.
    pub choice: Choice,
}

/// Places the ops of a model's graph, which must be valid, and chooses splits for it.
pub fn plan(model: &Graph, request: &PlanRequest) -> Planned {
    let PlanRequest {
        topology,
        workload,
        homes,
        ..
    } = request;
    let Placed { graph, mirrored } = place(model, homes, &request.devices, topology, workload);
    let factors = Factors::infer(&graph);
    let mut analysis = Analysis::of(&graph, &factors);
    analysis.keep_whole(&mirrored);
    let users = Users::of_graph(&graph);
    let regions = regions(&graph, &analysis);
    let mut choice = Choice::none();
    choice.distinct = 0;
    for (stage, devices) in homes.stages.iter().enumerate() {
        let group = Group::new(stage);
        let shares = request.stage_shares(stage);
        let pricer = Pricer {
            graph: &graph,
            factors: &factors,
            analysis: &analysis,
            users: &users,
            topology,
            workload,
            devices,
            shares: &shares,
            memory_price: request.memory_price,
            collective_cap: collective_cap(&graph, topology.device(devices[0])),
            expert_load: ExpertLoad::default(),
        };
        let own: Vec<Region> = regions
            .iter()
            .filter(|r| r.group == group)
            .cloned()
            .collect();
        if devices.len() > 1 {
            choice.join(choose(&pricer, group, &own));
        }
    }
    choice.distinct = choice.distinct.max(1);
    Planned {
        graph,
        factors,
        analysis,
        users,
        regions,
        choice,
    }
}

/// The most that a collective counts while splits within layers are chosen, in µs: a tenth of reading a matrix of mean
/// size.
fn collective_cap(graph: &Graph, device: &DeviceProfile) -> f64 {
    let mut matrices = (0_u64, 0.0);
    for (_, data) in graph.insts() {
        let Op::Weight(_) = data.op else { continue };
        let ty = &graph.value(data.results[0]).ty;
        if !ty.dims[1].is_one() {
            let n = ty.elements().and_then(|d| d.as_const()).unwrap_or(0);
            let bytes = n as f64 * element_bytes(ty.dtype);
            matrices = (matrices.0 + 1, matrices.1 + bytes);
        }
    }
    matrices.1 / (matrices.0.max(1) as f64) / device.bandwidth * 1e6 / 10.0
}
