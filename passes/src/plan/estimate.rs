//! Estimated times of a finished plan.

use tpc_ir::{Bindings, Graph, Inst, Op, Place, Value};

use super::price::Pricer;
use super::timeline::transfer;
use super::{PlanRequest, Planned, SplitOption};
use crate::machine::{Engine, Workload};
use crate::place::group_of;

/// Estimated times, in microseconds, and speeds of one sequence.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    /// The engine whose speed it is.
    pub engine: Engine,
    /// Tokens in the cache when a token is decoded, and before the prompt.
    pub depth: u64,
    /// One token.
    pub decode_us: f64,
    /// One largest batch of a prompt.
    pub prefill_us: f64,
    /// One token on a single device of the first profile, if it had the memory.
    pub baseline_single_us: f64,
    /// Decoded tokens per second.
    pub decode_tps: f64,
    /// Tokens per second of a prompt of several largest batches, which stages work on at the same time where the engine
    /// does so.
    pub prompt_tps: f64,
    /// The relative error that such an estimate is known to have: half of those that could be compared with measurements
    /// are nearer.
    pub error: f64,
    /// What the time of a decoded token consists of.
    pub breakdown: Breakdown,
}

/// The parts of the time of a decoded token, in microseconds. They add up to it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Breakdown {
    /// Products with weights: the reading of the weights.
    pub weights_us: f64,
    /// Attention, recurrent states included.
    pub attention_us: f64,
    /// All other ops on the devices.
    pub other_us: f64,
    /// The fixed time of every kernel, and of every token.
    pub launches_us: f64,
    /// Collectives, and copies between devices.
    pub collectives_us: f64,
    /// Work of the host, and copies to and from it.
    pub host_us: f64,
}

/// Estimates the times of a plan and its sharded form. Stages run one after another; so do the host and the devices.
pub fn estimate(planned: &Planned, sharded: &Graph, request: &PlanRequest) -> Estimate {
    let Workload { decode, prefill } = &request.workload;
    let time = |batch: &Bindings| {
        let stages: f64 = (0..request.layer_placement.stages.len())
            .map(|stage| stage_us(planned, request, stage, batch))
            .sum();
        stages + elsewhere_us(planned, request, batch) + transfers_us(sharded, request, batch)
    };
    let (decode_us, prefill_us) = (time(decode), time(prefill));
    Estimate {
        engine: request.engine,
        depth: request.depth,
        decode_us,
        prefill_us,
        baseline_single_us: single_us(planned, request, decode),
        decode_tps: 1e6 / decode_us.max(1e-3),
        prompt_tps: request.workload.ubatch() * 1e6 / prefill_us.max(1e-3),
        error: 0.0,
        breakdown: Breakdown::default(),
    }
}

/// The work of a stage's busiest device.
fn stage_us(planned: &Planned, request: &PlanRequest, stage: usize, batch: &Bindings) -> f64 {
    let device_weights = request.stage_device_weights(stage);
    let devices = &request.layer_placement.stages[stage];
    let pricer = Pricer::new(planned.graph_facts(), request, devices, &device_weights);
    let groups = || {
        planned
            .layer_groups
            .iter()
            .filter(|r| r.group.index() == stage)
    };
    let assignments: Vec<Vec<&SplitOption>> = groups()
        .map(|g| {
            let here = |o: &&SplitOption| {
                o.group == g.group && o.leaves.iter().any(|l| g.leaves.contains(l))
            };
            planned.choice.options.iter().filter(here).collect()
        })
        .collect();
    (0..device_weights.len())
        .map(|rank| {
            groups()
                .zip(&assignments)
                .map(|(g, assignment)| pricer.work_us(g, assignment, rank, batch))
                .sum()
        })
        .fold(0.0, f64::max)
}

/// Work of the host and of single devices.
fn elsewhere_us(planned: &Planned, request: &PlanRequest, batch: &Bindings) -> f64 {
    let graph = &planned.graph;
    let pricer = Pricer::new(planned.graph_facts(), request, &[0], &[1.0]);
    let alone = |(inst, _): &(Inst, _)| group_of(graph, *inst).is_none();
    graph
        .insts()
        .filter(alone)
        .filter_map(|(inst, data)| {
            let profile = match graph.value(*data.results.first()?).place {
                Place::Device(d) => request.topology.device(d.index()),
                Place::Host | Place::Group(_) => &request.topology.host,
            };
            Some(pricer.elsewhere_us(inst, profile, batch))
        })
        .sum()
}

/// The whole graph on one device.
fn single_us(planned: &Planned, request: &PlanRequest, batch: &Bindings) -> f64 {
    let pricer = Pricer::new(planned.graph_facts(), request, &[0], &[1.0]);
    let profile = request.topology.device(0);
    let work: f64 = planned
        .graph
        .insts()
        .map(|(inst, _)| pricer.elsewhere_us(inst, profile, batch))
        .sum();
    // The inputs go there together, the logits come back.
    let link = request.topology.host_link;
    let bytes = |v: Value| planned.graph.value(v).ty.bytes(batch).unwrap_or(0) as f64;
    let inputs = planned
        .graph
        .insts()
        .filter(|(_, i)| matches!(i.op, Op::Input(_)));
    let outputs = planned.graph.outputs.iter().filter_map(|o| match o {
        tpc_ir::Output::Named(_, v) => Some(*v),
        tpc_ir::Output::State { .. } => None,
    });
    let moved: f64 = inputs
        .map(|(_, i)| bytes(i.results[0]))
        .chain(outputs.map(bytes))
        .sum();
    work + 2.0 * link.latency_us + moved / link.bandwidth * 1e6
}

/// The time of all collectives of a batch, in microseconds.
pub fn collectives_us(sharded: &Graph, request: &PlanRequest, batch: &Bindings) -> f64 {
    let each = sharded.insts().filter(|(_, i)| i.op.is_collective());
    each.filter_map(|(inst, _)| transfer(sharded, request, inst, batch))
        .map(|t| t.us)
        .sum()
}

/// Microseconds of collectives and copies. The inputs of a batch travel together and cost one latency.
fn transfers_us(sharded: &Graph, request: &PlanRequest, batch: &Bindings) -> f64 {
    let each = sharded
        .insts()
        .filter_map(|(inst, _)| transfer(sharded, request, inst, batch));
    request.topology.host_link.latency_us + each.map(|t| t.us).sum::<f64>()
}
