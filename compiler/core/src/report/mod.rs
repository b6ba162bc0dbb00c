//! What a plan says: one set of numbers, rendered as a table, JSON or RON.

mod dot;
mod drafts;
mod factors;
mod html;
mod kinds;
mod query;
mod rewriting;
mod table;
mod why;
pub mod words;

pub use dot::{LayerRange, render_dot};
pub use drafts::{DraftBytes, DraftsReport};
pub use factors::render_factors;
pub use html::{page, refusal_page};
pub use kinds::suffix;
pub use kinds::{LayerKind, TensorRow, layer_kinds};
pub use query::values;
pub use rewriting::render_rewriting;
pub use table::{bytes, render};
pub use why::{CostReport, FactorReport, Size, ThroughReport, WhyReport, explain};

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use tpc_ir::{Bindings, Graph, Op, Place, RANK, Sharding, Value};
use tpc_passes::footprint::{Footprint, Traffic, footprints, traffic};

use crate::pipeline::{Compiled, Considered};
use crate::placement::{DeviceKind, Placement};
use tpc_diag::{Diagnostic, Severity};

/// The object that `plan --format json` prints. Keys may be added, never changed.
#[derive(Clone, Debug, Serialize)]
pub struct PlanReport {
    /// Version of this format.
    pub tpc: u32,
    /// The model.
    pub model: ModelReport,
    /// `ok` or `error`.
    pub verdict: &'static str,
    /// How the model is divided.
    pub split_mode: &'static str,
    /// Bytes per device.
    pub devices: Vec<DeviceReport>,
    /// Bytes on the host.
    pub host: DeviceReport,
    /// Every tensor of the file that the model uses, then every cache.
    pub tensors: Vec<TensorReport>,
    /// Transfers per batch.
    pub collectives: Collectives,
    /// What blocks that guess further tokens ahead add to all this; none where they are not planned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drafts: Option<DraftsReport>,
    /// Estimated times.
    pub estimate: EstimateReport,
    /// Bytes of weights held more than once, beyond the first copy.
    pub mirrored_bytes: u64,
    /// The same by cause.
    pub mirrored: MirroredReport,
    /// The search behind the choice.
    pub search: SearchReport,
    /// What became of its collectives and copies.
    pub rewriting: RewritingReport,
    /// Why the tensors asked about are split as they are.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub why: Vec<WhyReport>,
    /// The ways to divide the model that `auto` compared; empty for any other mode.
    pub considered: Vec<ConsideredReport>,
    /// Findings.
    pub diagnostics: Vec<Diagnostic>,
}

/// The model.
#[derive(Clone, Debug, Serialize)]
pub struct ModelReport {
    /// The file.
    pub path: String,
    /// Architecture.
    pub arch: String,
    /// Name.
    pub name: String,
    /// Layers.
    pub n_layer: u64,
    /// Elements of all tensors of the file.
    pub n_params: u64,
    /// Bytes of all tensors of the file.
    pub bytes: u64,
    /// Cells of the KV cache.
    pub n_ctx: u64,
    /// Bytes of tensors of the file that the model does not use.
    pub unused_bytes: u64,
}

/// Bytes at one place.
#[derive(Clone, Debug, Serialize)]
pub struct DeviceReport {
    /// Name.
    pub name: String,
    /// `cpu`, `cuda`, `generic` or `host`.
    pub kind: &'static str,
    /// Weights.
    pub weights_bytes: u64,
    /// KV caches.
    pub kv_bytes: u64,
    /// Other states.
    pub state_bytes: u64,
    /// Intermediate values of the largest batch at their peak.
    pub compute_bytes: u64,
    /// Of these, what copies and collectives have brought, at its own peak.
    pub staging_bytes: u64,
    /// All of it.
    pub total_bytes: u64,
    /// The device's memory, where the topology says it.
    pub capacity_bytes: Option<u64>,
}

/// One tensor.
#[derive(Clone, Debug, Serialize)]
pub struct TensorReport {
    /// Name in the file; for a cache, the state's name.
    pub name: String,
    /// Element type.
    pub dtype: &'static str,
    /// Sizes, axis 0 first.
    pub ne: [u64; RANK],
    /// Where it lives.
    pub place: String,
    /// How it is divided.
    pub sharding: ShardingReport,
    /// The positions of the devices that hold it or a part of it; none for a tensor on the host.
    #[serde(skip)]
    pub devices: Vec<usize>,
    /// Bytes on each of these devices, or on the host.
    #[serde(skip)]
    pub bytes: Vec<u64>,
    /// `weight` or `state`.
    pub kind: &'static str,
    /// The layer it belongs to.
    pub layer: Option<u32>,
}

/// How a tensor is divided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ShardingReport {
    /// `mirrored` or `split`.
    pub kind: &'static str,
    /// The split axis.
    pub axis: Option<usize>,
    /// `[start, len]` per device, or per device a list of segments; empty where nothing is split.
    pub ranges: Ranges,
}

/// Ranges of indices along the split axis.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Ranges {
    /// One range per device; none where nothing is split.
    Single(Vec<[u64; 2]>),
    /// Several segments per device.
    Segments(Vec<Vec<[u64; 2]>>),
}

impl Ranges {
    /// Number of indices per device.
    pub fn lens(&self) -> Vec<u64> {
        match self {
            Ranges::Single(r) => r.iter().map(|r| r[1]).collect(),
            Ranges::Segments(s) => s.iter().map(|s| s.iter().map(|r| r[1]).sum()).collect(),
        }
    }
}

/// Transfers per batch.
#[derive(Clone, Debug, Serialize)]
pub struct Collectives {
    /// One token.
    pub decode: TrafficReport,
    /// One largest batch.
    pub prefill: TrafficReport,
}

/// Transfers of one batch.
#[derive(Clone, Debug, Serialize)]
pub struct TrafficReport {
    /// All-reduces.
    pub all_reduce: u64,
    /// All-gathers.
    pub all_gather: u64,
    /// Reduce-scatters.
    pub reduce_scatter: u64,
    /// All-to-alls.
    pub all_to_all: u64,
    /// Copies between the host and devices.
    pub copies: u64,
    /// Bytes that enter them, one participant's operand each.
    pub bytes: u64,
}

impl From<Traffic> for TrafficReport {
    fn from(t: Traffic) -> TrafficReport {
        let Traffic {
            all_reduce,
            all_gather,
            reduce_scatter,
            all_to_all,
            copies,
            bytes,
        } = t;
        TrafficReport {
            all_reduce,
            all_gather,
            reduce_scatter,
            all_to_all,
            copies,
            bytes,
        }
    }
}

/// Estimated times, in microseconds.
#[derive(Clone, Debug, Serialize)]
pub struct EstimateReport {
    /// One token.
    pub decode_us: f64,
    /// One largest batch.
    pub prefill_us: f64,
    /// One token on a single device.
    pub baseline_single_us: f64,
}

/// Bytes of weights held more than once, beyond the first copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MirroredReport {
    /// Tensors that are whole on every device.
    pub whole_bytes: u64,
    /// Quantisation blocks in which the ranges of two devices meet: both hold the block.
    pub edge_block_bytes: u64,
    /// Rows of KV heads that devices share.
    pub shared_head_bytes: u64,
}

impl MirroredReport {
    /// All of it.
    pub const fn total(&self) -> u64 {
        self.whole_bytes + self.edge_block_bytes + self.shared_head_bytes
    }
}

fn mirrored(compiled: &Compiled) -> MirroredReport {
    let mut held: BTreeMap<&str, u64> = BTreeMap::new();
    let batch = Bindings::default();
    for (_, inst) in compiled.programs.insts() {
        if let Op::Weight(w) = &inst.op {
            let bytes = compiled
                .programs
                .value(inst.results[0])
                .ty
                .bytes(&batch)
                .unwrap_or(0);
            *held.entry(&w.tensor).or_default() += bytes;
        }
    }
    let mut out = MirroredReport::default();
    let mut seen = BTreeSet::new();
    for (_, v) in compiled.weights() {
        let data = compiled.sharded.value(v);
        let Op::Weight(w) = compiled.sharded.def_op(v) else {
            continue;
        };
        // A weight that several stages use is told once.
        if !seen.insert(w.tensor.as_str()) {
            continue;
        }
        let once = data.ty.bytes(&batch).unwrap_or(0);
        let extra = held
            .get(w.tensor.as_str())
            .map_or(0, |h| h.saturating_sub(once));
        let cause = match (data.sharding.is_split(), data.sharding.granule > 1) {
            (false, _) => &mut out.whole_bytes,
            (true, true) => &mut out.edge_block_bytes,
            (true, false) => &mut out.shared_head_bytes,
        };
        *cause += extra;
    }
    out
}

/// A way to divide the model that `auto` compared with others.
#[derive(Clone, Debug, Serialize)]
pub struct ConsideredReport {
    /// `none`, `layer`, `tensor`, or `layer of 2 × tensor of 4`.
    pub name: String,
    /// One token.
    pub decode_us: f64,
    /// One largest batch.
    pub prefill_us: f64,
    /// Bytes of weights, caches and states on the fullest device.
    pub fullest_bytes: u64,
    /// Whether that fits, as far as the topology says what there is.
    pub fits: bool,
    /// Microseconds per decoded token, prompts and memory weighted in: what was compared.
    pub cost_us: f64,
    /// Whether this is the one.
    pub chosen: bool,
}

impl From<&Considered> for ConsideredReport {
    fn from(c: &Considered) -> ConsideredReport {
        ConsideredReport {
            name: c.name.clone(),
            decode_us: c.estimate.decode_us,
            prefill_us: c.estimate.prefill_us,
            fullest_bytes: c.fullest,
            fits: c.fits,
            cost_us: c.cost,
            chosen: c.chosen,
        }
    }
}

/// The search behind the choice.
#[derive(Clone, Debug, Serialize)]
pub struct SearchReport {
    /// Distinct layers (and ends) that were planned.
    pub distinct: usize,
    /// Sets of splits priced.
    pub priced: u64,
    /// Whether all were.
    pub optimal: bool,
    /// By how much of the cheapest set's cost the chosen one may cost more, at most; 0 where it is the cheapest.
    pub at_most_above: f64,
}

/// What rewriting did to the transfers of the sharded graph.
#[derive(Clone, Debug, Serialize)]
pub struct RewritingReport {
    /// Collectives before.
    pub collectives_before: usize,
    /// Collectives after.
    pub collectives_after: usize,
    /// Copies between places before.
    pub copies_before: usize,
    /// Copies between places after.
    pub copies_after: usize,
    /// Whether the rules had nothing more to say in any region.
    pub saturated: bool,
    /// Per rule that found something in a distinct region, how often.
    pub rules: BTreeMap<&'static str, usize>,
}

/// The sharding of a value of the sharded graph, for people and scripts.
pub fn sharding_report(graph: &Graph, value: Value) -> ShardingReport {
    let data = graph.value(value);
    let sharding: &Sharding = &data.sharding;
    let axis = (0..RANK).find(|&a| sharding.axes[a].is_some());
    let Some(axis) = axis else {
        return ShardingReport {
            kind: "mirrored",
            axis: None,
            ranges: Ranges::Single(Vec::new()),
        };
    };
    let runs: Vec<Vec<[u64; 2]>> = (0..graph.ranks(data.place))
        .map(|rank| {
            let runs = sharding
                .intervals(axis, &data.ty.dims[axis], &graph.classes, rank)
                .unwrap_or_default();
            runs.iter().map(|r| [r.start, r.len]).collect()
        })
        .collect();
    let ranges = if runs.iter().all(|r| r.len() <= 1) {
        Ranges::Single(
            runs.iter()
                .map(|r| r.first().copied().unwrap_or([0, 0]))
                .collect(),
        )
    } else {
        Ranges::Segments(runs)
    };
    ShardingReport {
        kind: "split",
        axis: Some(axis),
        ranges,
    }
}

/// A place as scripts see it: `tp0`, `host`, or the device's name.
fn place_name(graph: &Graph, place: Place) -> String {
    match place {
        Place::Device(d) => graph.device(d).name.clone(),
        Place::Group(g) => match graph.group(g).devices.as_slice() {
            [one] => graph.device(*one).name.clone(),
            _ => place.to_string(),
        },
        Place::Host => place.to_string(),
    }
}

/// The positions of the devices at a place; none for the host.
fn devices_at(graph: &Graph, place: Place) -> Vec<usize> {
    match place {
        Place::Host => Vec::new(),
        Place::Device(d) => vec![d.index()],
        Place::Group(g) => graph.group(g).devices.iter().map(|d| d.index()).collect(),
    }
}

/// Puts the report of a plan together.
pub fn report(path: &str, placement: &Placement, compiled: &Compiled) -> PlanReport {
    let batch = compiled.memory_batch();
    let prints = footprints(&compiled.programs, &batch);
    let device = |name: String, kind: &'static str, place: Place, capacity: Option<f64>| {
        let p = prints.get(&place).copied().unwrap_or_default();
        let Footprint {
            weights,
            kv,
            state,
            compute,
            staging,
        } = p;
        DeviceReport {
            name,
            kind,
            weights_bytes: weights,
            kv_bytes: kv,
            state_bytes: state,
            compute_bytes: compute,
            staging_bytes: staging,
            total_bytes: p.total(),
            capacity_bytes: capacity.map(|c| c as u64),
        }
    };
    let devices: Vec<DeviceReport> = placement
        .devices
        .iter()
        .enumerate()
        .map(|(i, d)| {
            let kind = match d.kind {
                DeviceKind::Generic => "generic",
                DeviceKind::Cpu => "cpu",
                DeviceKind::Cuda(_) => "cuda",
            };
            let capacity = placement.topology.device(i).memory;
            device(
                d.name.clone(),
                kind,
                Place::Device(tpc_ir::Device::new(i)),
                capacity,
            )
        })
        .collect();
    let host = device(
        "host".to_owned(),
        "host",
        Place::Host,
        placement.topology.host.memory,
    );
    let tensors = tensors(compiled);
    let used: u64 = compiled
        .weights()
        .filter_map(|(_, v)| match compiled.sharded.def_op(v) {
            Op::Weight(w) => Some((w.tensor.as_str(), v)),
            _ => None,
        })
        .collect::<BTreeMap<&str, Value>>()
        .into_values()
        .map(|v| compiled.sharded.value(v).ty.bytes(&batch).unwrap_or(0))
        .fold(0, u64::saturating_add);
    let bytes = compiled.size.bytes;
    let mirrored = mirrored(compiled);
    let choice = compiled.choice();
    let out = PlanReport {
        tpc: 1,
        model: ModelReport {
            path: path.to_owned(),
            arch: compiled.model.summary.arch.to_owned(),
            name: compiled.model.summary.name.clone(),
            n_layer: compiled.model.summary.n_layer,
            n_params: compiled.size.params,
            bytes,
            n_ctx: compiled.caches.n_ctx,
            unused_bytes: bytes.saturating_sub(used),
        },
        verdict: "ok",
        split_mode: compiled.mode.name(),
        devices,
        host,
        tensors,
        collectives: Collectives {
            decode: traffic(&compiled.programs, &compiled.decode_batch()).into(),
            prefill: traffic(&compiled.programs, &compiled.request.workload.prefill).into(),
        },
        drafts: drafts::drafts(placement, compiled),
        estimate: EstimateReport {
            decode_us: compiled.estimate.decode_us,
            prefill_us: compiled.estimate.prefill_us,
            baseline_single_us: compiled.estimate.baseline_single_us,
        },
        mirrored_bytes: mirrored.total(),
        mirrored,
        search: SearchReport {
            distinct: choice.distinct,
            priced: choice.priced,
            optimal: choice.optimal,
            at_most_above: choice.excess(),
        },
        rewriting: rewriting::rewriting(&compiled.rewriting),
        why: Vec::new(),
        considered: compiled.considered.iter().map(Into::into).collect(),
        diagnostics: Vec::new(),
    };
    out
}

fn tensors(compiled: &Compiled) -> Vec<TensorReport> {
    let graph = &compiled.sharded;
    let batch = compiled.memory_batch();
    let one = |kind: &'static str, name: &str, layer: Option<u32>, v: Value| {
        let data = graph.value(v);
        TensorReport {
            name: name.to_owned(),
            dtype: data.ty.dtype.name(),
            ne: std::array::from_fn(|i| data.ty.dims[i].eval(&batch).unwrap_or(0)),
            place: place_name(graph, data.place),
            sharding: sharding_report(graph, v),
            devices: devices_at(graph, data.place),
            bytes: (0..graph.ranks(data.place))
                .map(|rank| {
                    let local = (data.sharding).local_type(&data.ty, &graph.classes, rank);
                    local.and_then(|t| t.bytes(&batch)).unwrap_or(0)
                })
                .collect(),
            kind,
            layer,
        }
    };
    let mut weights = Vec::new();
    let mut states = Vec::new();
    for (_, i) in graph.insts() {
        match &i.op {
            Op::Weight(w) => weights.push(one("weight", &w.tensor, i.layer, i.results[0])),
            Op::State(s) => states.push(one("state", &s.name, i.layer, i.results[0])),
            _ => {}
        }
    }
    weights.extend(states);
    weights
}

impl PlanReport {
    /// Whether a finding is an error.
    pub fn has_errors(&self) -> bool {
        self.diagnostics
            .iter()
            .any(|d| d.severity == Severity::Error)
    }
}
