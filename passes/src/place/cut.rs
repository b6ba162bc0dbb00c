//! Divides ops between their layers' places and one other place by a minimum cut.
//!
//! A value that crosses the cut costs one copy, for any number of users. An op costs its time on its side. Costs are
//! times per decoded token, plus weighted prompt times.

use tpc_ir::{Bindings, Graph, Inst, Op, Output, Place, Symbol, Value};

use super::LayerPlacement;
use super::min_cut::FlowNetwork;
use crate::machine::{Link, Topology, Workload};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// Fixed at the layer's place, or at a third place.
    Layer,
    Other,
    Free,
}

pub(super) struct CutCosts {
    other: Place,
    link: Link,
    /// Operations per second at the other place, and at a layer's place.
    flops: [f64; 2],
    batches: [(Bindings, f64); 2],
}

impl CutCosts {
    pub(super) fn new(
        other: Place,
        placement: &LayerPlacement,
        topology: &Topology,
        workload: &Workload,
    ) -> CutCosts {
        let device = |rank: usize| topology.device(rank);
        let there = match other {
            Place::Device(d) => device(d.index()),
            Place::Host | Place::Group(_) => &topology.host,
        };
        let link = match other {
            Place::Device(_) => topology.link,
            Place::Host | Place::Group(_) => topology.host_link,
        };
        // This is optimistic: it assumes that all devices of a stage share an op.
        let stage = placement.stages.iter();
        let stage = stage.map(|stage| stage.iter().map(|&d| device(d).flops).sum());
        let fastest = stage.fold(1.0, f64::max);
        let prompt = Workload::PROMPT_WEIGHT / workload.ubatch();
        CutCosts {
            other,
            link,
            flops: [there.flops, fastest],
            batches: [
                (half_full(workload.decode), 1.0),
                (half_full(workload.prefill), prompt),
            ],
        }
    }

    fn copy_ns(&self, graph: &Graph, v: Value) -> u64 {
        let ty = &graph.value(v).ty;
        let us = self.batches.iter().map(|(batch, weight)| {
            let bytes = ty.bytes(batch).unwrap_or(u64::MAX) as f64;
            weight * (self.link.latency_us.min(ENQUEUE_US) + bytes / self.link.bandwidth * 1e6)
        });
        nanoseconds(us.sum())
    }

    /// Returns the nanoseconds of an op without weights at the other place, and at its layer's place.
    fn op_ns(&self, graph: &Graph, inst: Inst) -> [u64; 2] {
        let data = graph.inst(inst);
        if data.op.is_view() {
            return [0; 2];
        }
        // Operands just computed are still in caches, so their traffic does not count.
        self.flops.map(|flops| {
            let us = self.batches.iter().map(|(batch, weight)| {
                let bytes = |v: &Value| graph.value(*v).ty.bytes(batch).unwrap_or(u64::MAX) as f64;
                let elements = data.results.iter().map(bytes).sum::<f64>() / 4.0;
                weight * elements / flops * 1e6
            });
            nanoseconds(us.sum())
        })
    }
}

/// Limits caches to half full, so that copying a slice of the attended cells is cheaper than copying the whole cache.
fn half_full(batch: Bindings) -> Bindings {
    let half = |b: Bindings, seen: Symbol, all: Symbol| {
        let most = b.get(all).div_ceil(2);
        b.with(seen, b.get(seen).min(most))
    };
    let batch = half(batch, Symbol::NKv, Symbol::NCtx);
    half(batch, Symbol::NKvSwa, Symbol::NCtxSwa)
}

/// Rounds to integers, which keep flows exact. Costs are capped at one hour.
fn nanoseconds(us: f64) -> u64 {
    (us * 1e3).clamp(0.0, 3.6e12) as u64
}

/// Microseconds of each further copy among copies that share one link latency.
const ENQUEUE_US: f64 = 1.0;

/// The capacity of edges that must not be cut: larger than any sum of costs.
const FORBIDDEN: u64 = 1 << 60;

/// Returns the free instructions that the cheapest division moves to the other place; the smallest set if several are
/// cheapest.
pub(super) fn cheapest_cut(
    graph: &Graph,
    side: &dyn Fn(Inst) -> Side,
    costs: &CutCosts,
) -> Vec<Inst> {
    let mut network = FlowNetwork::new();
    let (layer, other) = (FlowNetwork::SOURCE, FlowNetwork::SINK);
    let mut free: Vec<(Inst, u32)> = Vec::new();
    let nodes: Vec<u32> = graph
        .insts()
        .map(|(i, _)| match side(i) {
            Side::Layer => layer,
            Side::Other => other,
            Side::Free => {
                let node = network.add_node();
                let [there, here] = costs.op_ns(graph, i);
                network.add_edge(layer, node, there);
                network.add_edge(node, other, here);
                free.push((i, node));
                node
            }
        })
        .collect();
    if free.is_empty() {
        return Vec::new();
    }
    let mut users: Vec<Vec<u32>> = vec![Vec::new(); graph.values().len()];
    for (inst, data) in graph.insts() {
        for v in &data.operands {
            users[v.index()].push(nodes[inst.index()]);
        }
    }
    for output in &graph.outputs {
        let at = match output {
            Output::Named(..) if costs.other == Place::Host => other,
            Output::Named(..) => layer,
            Output::State { state, .. } => nodes[graph.value(*state).def.0.index()],
        };
        users[output.value().index()].push(at);
    }
    for (v, data) in graph.values() {
        let maker = nodes[data.def.0.index()];
        let mut used = std::mem::take(&mut users[v.index()]);
        used.sort_unstable();
        used.dedup();
        used.retain(|&u| u != maker);
        let fixed = |n: u32| n == layer || n == other;
        // Weights are stored at the places that use them.
        if used.is_empty()
            || fixed(maker) && used.iter().all(|&u| fixed(u))
            || matches!(graph.def_op(v), Op::Weight(_))
        {
            continue;
        }
        let cost = costs.copy_ns(graph, v);
        // The copy to the other place, shared by all users there.
        let there = network.add_node();
        network.add_edge(maker, there, cost);
        // The copy to the layer's place.
        let here = network.add_node();
        network.add_edge(here, maker, cost);
        for &u in &used {
            network.add_edge(there, u, FORBIDDEN);
            network.add_edge(u, here, FORBIDDEN);
        }
    }
    let sink_side = network.sink_side();
    free.iter()
        .filter(|(_, node)| sink_side[*node as usize])
        .map(|(inst, _)| *inst)
        .collect()
}
