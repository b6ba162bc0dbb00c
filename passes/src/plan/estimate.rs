//! Estimated times of a finished plan.

use tpc_ir::{Bindings, Graph, Inst, Op, Place, Value};

use super::price::Pricer;
use super::timeline::transfer;
use super::{PlanRequest, Planned, SplitOption};
use crate::machine::Workload;
use crate::place::group_of;

/// Estimated times, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    /// One token.
    pub decode_us: f64,
    /// One largest batch of a prompt.
    pub prefill_us: f64,
    /// One token on a single device of the first profile, if it had the memory.
    pub baseline_single_us: f64,
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
    Estimate {
        decode_us: time(decode),
        prefill_us: time(prefill),
        baseline_single_us: single_us(planned, request, decode),
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
