//! The bill of a batch: the number of launches of each kernel per device, and the transfers. Machine and engine affect
//! only the price, so one bill can be priced for several.

use rustc_hash::FxHashMap;
use tpc_ir::factor::Var;
use tpc_ir::op::{Collective, OpCategory};
use tpc_ir::{Bindings, DType, Graph, Group, Inst, Interval, Op, Place};

use super::layer_group::{LayerGroup, Signature};
use super::price::Pricer;
use super::timeline::transfer;
use super::{Breakdown, ModelKind, PlanRequest, PlannedGraph, SplitOption};
use crate::machine::{
    EngineProfile, Kernel, KernelKind, Participants, Regime, Speed, Topology, Way,
};
use crate::place::group_of;

/// The maximum bytes of weights that a small model reads per token.
const SMALL: f64 = 2e9;

/// A kernel with its number of launches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KernelCount {
    /// The kernel.
    pub kernel: Kernel,
    /// The number of launches.
    pub count: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Exchange {
    stage: usize,
    collective: Collective,
    bytes: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Move {
    us: f64,
    host: bool,
    input: bool,
}

/// The kernels and transfers of a batch.
#[derive(Clone, Debug)]
pub struct Bill {
    regime: Regime,
    devices: Vec<Vec<usize>>,
    stages: Vec<Vec<Vec<KernelCount>>>,
    /// Kernels of the host, and of single devices outside stages.
    alone: Vec<(Option<usize>, KernelCount)>,
    exchanges: Vec<Exchange>,
    moves: Vec<Move>,
}

/// The times of a bill, in microseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Times {
    /// The busiest device of each stage.
    pub stages: Vec<Breakdown>,
    /// Work that every split does once, at one place.
    pub rest: Breakdown,
}

impl Times {
    /// Returns the sum over all stages and the rest, as if in sequence.
    pub fn parts(&self) -> Breakdown {
        self.stages.iter().fold(self.rest, |sum, s| sum + *s)
    }

    /// Returns the time of a batch that is one of `batches` batches of a prompt. If no weight is on the host, stages
    /// overlap on successive batches as far as the engine allows.
    pub fn batch_us(&self, batches: f64, profile: &EngineProfile) -> f64 {
        let sum = self.parts().total();
        let stages = self.stages.iter().map(Breakdown::total);
        let (count, all) = (self.stages.len() as f64, stages.clone().sum::<f64>());
        if count < 2.0 || batches < 2.0 || profile.overlap <= 0.0 || self.rest.host_us > all {
            return sum;
        }
        let ideal = (all + (batches - 1.0) * stages.fold(0.0, f64::max)) / batches;
        let overlapped = all - profile.overlap * (all - ideal);
        let handed = self.rest.collectives_us * (1.0 - 1.0 / count.min(batches));
        sum - all + overlapped - handed
    }
}

impl Bill {
    /// Returns the bill of a plan and its sharded graph for a batch.
    pub fn new(
        planned: &PlannedGraph,
        sharded: &Graph,
        request: &PlanRequest,
        batch: &Bindings,
    ) -> Bill {
        let mut out = Bill {
            regime: Regime::of(batch),
            devices: request.layer_placement.stages.clone(),
            stages: Vec::new(),
            alone: kernels_outside_stages(planned, request, batch),
            exchanges: Vec::new(),
            moves: Vec::new(),
        };
        for stage in 0..out.devices.len() {
            out.stages
                .push(stage_kernels(planned, request, stage, batch));
        }
        for (inst, data) in sharded.insts() {
            let Some(t) = transfer(sharded, request, inst, batch) else {
                continue;
            };
            if let OpCategory::Collective(collective) = data.op.category() {
                out.exchanges.push(Exchange {
                    stage: group_of(sharded, inst).map_or(0, Group::index),
                    collective,
                    bytes: t.bytes.first().copied().unwrap_or(0) as f64,
                });
            } else {
                let place = |v| sharded.value(v).place;
                let ends = [place(data.operands[0]), place(data.results[0])];
                out.moves.push(Move {
                    us: t.us,
                    host: ends.contains(&Place::Host),
                    input: matches!(sharded.def_op(data.operands[0]), Op::Input(_)),
                });
            }
        }
        out
    }

    /// Returns the bill of the whole graph on one device, including inputs and outputs.
    pub fn on_one_device(planned: &PlannedGraph, request: &PlanRequest, batch: &Bindings) -> Bill {
        let pricer = Pricer::new(planned.graph_facts(), request, &[0], &[1.0]);
        let insts = planned.graph.insts();
        let kernels = insts.filter_map(|(i, _)| pricer.kernel(i, &[], 0, batch));
        let once = |kernel| KernelCount { kernel, count: 1.0 };
        let link = request.topology.host_link;
        let bytes = |v| planned.graph.value(v).ty.bytes(batch).unwrap_or(0) as f64;
        let outputs = planned.graph.outputs.iter().filter_map(|o| match o {
            tpc_ir::Output::Named(_, v) => Some(*v),
            tpc_ir::Output::State { .. } => None,
        });
        let moves = outputs.map(|v| Move {
            us: link.latency_us + bytes(v) / link.bandwidth * 1e6,
            host: true,
            input: false,
        });
        Bill {
            regime: Regime::of(batch),
            devices: vec![vec![0]],
            stages: vec![vec![kernels.map(once).collect()]],
            alone: Vec::new(),
            exchanges: Vec::new(),
            moves: moves.collect(),
        }
    }

    /// True if the host computes products.
    pub fn uses_host(&self) -> bool {
        let heavy = |k: &Kernel| k.kind != KernelKind::Light;
        self.alone
            .iter()
            .any(|(d, c)| d.is_none() && heavy(&c.kernel))
    }

    /// Returns the kind of the model, determined from its kernels.
    pub fn model_kind(&self) -> ModelKind {
        let shared = self.stages.iter().flatten().flatten();
        let all = shared.chain(self.alone.iter().map(|(_, c)| c));
        let (mut bytes, mut experts, mut recurrent) = (0.0, false, false);
        for c in all {
            bytes += c.kernel.weight_bytes * c.count;
            experts |= c.kernel.kind == KernelKind::Experts;
            recurrent |= c.kernel.kind == KernelKind::Recurrent;
        }
        match (experts, recurrent) {
            (true, _) => ModelKind::Mixture,
            _ if bytes < SMALL => ModelKind::Small,
            (_, true) => ModelKind::Hybrid,
            _ => ModelKind::Dense,
        }
    }

    /// Returns how the plan uses several devices.
    pub fn way(&self) -> Way {
        if self.uses_host() {
            Way::Host
        } else if self.devices.iter().any(|s| s.len() > 1) {
            Way::Tensor
        } else if self.devices.len() > 1 {
            Way::Layer
        } else {
            Way::Alone
        }
    }

    /// Returns the times of the bill on a machine, with an engine.
    pub fn times(&self, topology: &Topology, profile: &EngineProfile) -> Times {
        let speed = |d: usize| Speed::of_device(profile, topology.device(d));
        let shared = &EngineProfile {
            recurrent_us: profile.shared_recurrent_us,
            ..*profile
        };
        let mut out = Times::default();
        for (devices, kernels) in self.devices.iter().zip(&self.stages) {
            let profile = if devices.len() > 1 { shared } else { profile };
            let each = devices.iter().zip(kernels).map(|(&d, kernels)| {
                let speed = Speed::of_device(profile, topology.device(d));
                let parts = kernels.iter().map(|c| self.parts(&speed, c));
                parts.fold(Breakdown::default(), |sum, p| sum + p)
            });
            let busiest = each.reduce(|a, b| if b.total() > a.total() { b } else { a });
            out.stages.push(busiest.unwrap_or_default());
        }
        let rest = &mut out.rest;
        let host = Speed::of_host(profile, topology);
        for (device, counted) in &self.alone {
            match device {
                Some(d) => *rest = *rest + self.parts(&speed(*d), counted),
                None => {
                    let time = host.kernel(&counted.kernel, self.regime);
                    rest.host_us += time.total() * counted.count;
                }
            }
        }
        let stages = self.devices.iter();
        let participants: Vec<_> = stages.map(|d| Participants::of(topology, d)).collect();
        for x in &self.exchanges {
            let on = participants[x.stage];
            rest.collectives_us += profile.collective_us(x.collective, on, x.bytes);
        }
        for m in &self.moves {
            match (m.input, m.host) {
                (true, _) => rest.host_us += m.us,
                (false, true) => rest.host_us += m.us + profile.host_us,
                (false, false) => rest.collectives_us += m.us + profile.handover_us,
            }
        }
        rest.launches_us += profile.token_us;
        rest.host_us += topology.host_link.latency_us;
        out
    }

    fn parts(&self, speed: &Speed<'_>, counted: &KernelCount) -> Breakdown {
        let time = speed.kernel(&counted.kernel, self.regime);
        let busy = time.busy * counted.count;
        let mut out = Breakdown {
            launches_us: time.fixed * counted.count,
            ..Breakdown::default()
        };
        match counted.kernel.kind {
            KernelKind::Product | KernelKind::Experts => out.weights_us = busy,
            KernelKind::Attention | KernelKind::Recurrent => out.attention_us = busy,
            KernelKind::Light => out.other_us = busy,
        }
        out
    }
}

fn kernels_outside_stages(
    planned: &PlannedGraph,
    request: &PlanRequest,
    batch: &Bindings,
) -> Vec<(Option<usize>, KernelCount)> {
    let graph = &planned.graph;
    let pricer = Pricer::new(planned.graph_facts(), request, &[0], &[1.0]);
    let outside = |(inst, _): &(Inst, _)| group_of(graph, *inst).is_none();
    let each = graph.insts().filter(outside).filter_map(|(inst, data)| {
        let device = match graph.value(*data.results.first()?).place {
            Place::Device(d) => Some(d.index()),
            Place::Host | Place::Group(_) => None,
        };
        let kernel = pricer.kernel(inst, &[], 0, batch)?;
        Some((device, KernelCount { kernel, count: 1.0 }))
    });
    each.collect()
}

/// The cache key of a layer group's kernels in a stage: the group's signature, and the leaf positions and ranges of
/// each option.
type LayerGroupKey<'a> = (&'a Signature, Vec<(Vec<Option<usize>>, &'a [Interval])>);

/// Returns the kernels of each device of a stage. Equal layer groups with equal splits are computed once.
fn stage_kernels(
    planned: &PlannedGraph,
    request: &PlanRequest,
    stage: usize,
    batch: &Bindings,
) -> Vec<Vec<KernelCount>> {
    let device_weights = request.stage_device_weights(stage);
    let devices = &request.layer_placement.stages[stage];
    let pricer = Pricer::new(planned.graph_facts(), request, devices, &device_weights);
    let groups: Vec<&LayerGroup> = planned
        .layer_groups
        .iter()
        .filter(|g| g.group.index() == stage)
        .collect();
    let mut distinct: Vec<(&LayerGroup, Vec<&SplitOption>, f64)> = Vec::new();
    let mut known: FxHashMap<LayerGroupKey<'_>, usize> = FxHashMap::default();
    for g in groups {
        let at = |l: &Var| g.leaves.iter().position(|x| x == l);
        let here =
            |o: &&SplitOption| o.group == g.group && o.leaves.iter().any(|l| at(l).is_some());
        let assignment: Vec<&SplitOption> = planned.choice.options.iter().filter(here).collect();
        let ranges = assignment
            .iter()
            .map(|o| (o.leaves.iter().map(at).collect(), o.ranges.as_slice()));
        let next = distinct.len();
        let i = *known
            .entry((&g.signature, ranges.collect()))
            .or_insert(next);
        if i == next {
            distinct.push((g, assignment, 0.0));
        }
        distinct[i].2 += 1.0;
    }
    let all: Vec<&SplitOption> = distinct.iter().flat_map(|(_, o, _)| o).copied().collect();
    let of_rank = |rank: usize| {
        let each = distinct.iter().flat_map(|(g, assignment, count)| {
            let kernels = g
                .insts
                .iter()
                .filter_map(|&i| pricer.kernel(i, assignment, rank, batch));
            let counted = |kernel| KernelCount {
                kernel,
                count: *count,
            };
            kernels.map(counted).collect::<Vec<_>>()
        });
        merge_equal(each.collect())
    };
    let mut out: Vec<Vec<KernelCount>> = Vec::new();
    for (rank, first) in pricer.first_alike(&all).into_iter().enumerate() {
        let kernels = out.get(first).cloned().unwrap_or_else(|| of_rank(rank));
        out.push(kernels);
    }
    out
}

fn merge_equal(all: Vec<KernelCount>) -> Vec<KernelCount> {
    let mut out: Vec<KernelCount> = Vec::new();
    let mut known: FxHashMap<(KernelKind, DType, [u64; 3]), usize> = FxHashMap::default();
    for c in all {
        let k = &c.kernel;
        let bits = [k.work.bytes, k.work.flops, k.weight_bytes].map(f64::to_bits);
        let next = out.len();
        let i = *known.entry((k.kind, k.dtype, bits)).or_insert(next);
        if i == next {
            out.push(c);
        } else {
            out[i].count += c.count;
        }
    }
    out
}
