//! Estimated times of a finished plan.

use tpc_ir::op::Op;
use tpc_ir::{Bindings, Graph, Place};

use super::cost::{Draws, Workload, all_reduce_us};
use super::price::Pricer;
use super::{PlanRequest, Planned, SplitOption};

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

/// Estimates the times of the sharded form of `graph`.
pub fn estimate(
    graph: &Graph,
    planned: &Planned,
    sharded: &Graph,
    request: &PlanRequest,
) -> Estimate {
    let shares = request.shares();
    let pricer = Pricer {
        graph,
        factors: &planned.factors,
        analysis: &planned.analysis,
        users: &planned.users,
        topology: &request.topology,
        workload: &request.workload,
        shares: &shares,
        memory_price: 0.0,
        collective_cap: f64::INFINITY,
        draws: Draws::default(),
    };
    let regions = &planned.regions;
    let sets: Vec<Vec<&SplitOption>> = regions
        .iter()
        .map(|r| {
            planned
                .choice
                .options
                .iter()
                .filter(|o| o.leaves.iter().any(|l| r.leaves.contains(l)))
                .collect()
        })
        .collect();
    let work = |rank: usize, batch: &Bindings, split: bool| -> f64 {
        regions
            .iter()
            .zip(&sets)
            .map(|(r, s)| pricer.work_us(r, if split { s } else { &[] }, rank, batch))
            .sum()
    };
    let busiest = |batch: &Bindings| {
        (0..shares.len())
            .map(|d| work(d, batch, true))
            .fold(0.0, f64::max)
    };
    let Workload { decode, prefill } = &request.workload;
    Estimate {
        decode_us: busiest(decode) + transfers_us(sharded, request, decode),
        prefill_us: busiest(prefill) + transfers_us(sharded, request, prefill),
        baseline_single_us: work(0, decode, false) + host_us(sharded, request, decode),
    }
}

fn transfers_us(sharded: &Graph, request: &PlanRequest, batch: &Bindings) -> f64 {
    let link = request.topology.ring(request.devices.len());
    let collectives: f64 = sharded
        .insts()
        .filter(|(_, i)| i.op.is_collective())
        .map(|(_, i)| {
            let bytes = sharded.value(i.operands[0]).ty.bytes(batch).unwrap_or(0);
            all_reduce_us(link, request.devices.len(), bytes as f64)
        })
        .sum();
    collectives + host_us(sharded, request, batch)
}

/// Copies to and from the host. Those of the inputs go out together and cost one latency.
fn host_us(sharded: &Graph, request: &PlanRequest, batch: &Bindings) -> f64 {
    let link = request.topology.host_link;
    let mut bytes = 0.0;
    let mut out = 0.0;
    for (_, i) in sharded.insts().filter(|(_, i)| matches!(i.op, Op::Copy(_))) {
        bytes += sharded.value(i.operands[0]).ty.bytes(batch).unwrap_or(0) as f64;
        if sharded.value(i.results[0]).place == Place::Host {
            out += link.latency_us;
        }
    }
    link.latency_us + out + bytes / link.bandwidth * 1e6
}
