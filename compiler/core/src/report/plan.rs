//! The report of a plan: the object that `tpc plan --format json` prints.

use std::collections::BTreeMap;

use serde::Serialize;
use tpc_ggml::engines::Backend;
use tpc_ir::RANK;
use tpc_passes::footprint::Traffic;
use tpc_passes::machine::Engine;

use super::bits::BitsReport;
use super::commands::Commands;
use super::estimate::EstimateReport;
use super::machine::MachineReport;
use super::why::report::WhyReport;
use crate::advice::Advice;
use crate::beside::ExtraFileMemory;
use crate::pipeline::{Candidate, ExcludedMode};
use crate::placement::Placement;
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
    /// The machine.
    pub machine: MachineReport,
    /// The commands that run the plan.
    pub commands: Commands,
    /// The split mode that was planned: `none`, `layer`, `tensor` or `hybrid`.
    pub split_mode: &'static str,
    /// Bytes per device.
    pub devices: Vec<DeviceReport>,
    /// Bytes on the host.
    pub host: DeviceReport,
    /// Every tensor of the file that the model uses, then every cache.
    pub tensors: Vec<TensorReport>,
    /// Transfers per batch.
    pub collectives: Collectives,
    /// The comparison of the logits with one device's, bit by bit.
    pub bits: BitsReport,
    /// The part of the drafts in all this; `None` if drafts are not planned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drafts: Option<DraftsReport>,
    /// The memory that the host shares with devices of its machine, if it shares any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool: Option<PoolReport>,
    /// The files that are loaded in addition to the model.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<ExtraFileMemory>,
    /// Estimated times.
    pub estimate: EstimateReport,
    /// Bytes of weights held more than once, beyond the first copy.
    pub mirrored_bytes: u64,
    /// The same bytes by cause.
    pub mirrored: MirroredReport,
    /// The work of the search for splits.
    pub search: SearchReport,
    /// The collectives and copies of the sharded graph before and after rewriting.
    pub rewriting: RewritingReport,
    /// Explanations of the splits, for `--why`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub why: Vec<WhyReport>,
    /// The strategies that `auto` compared; empty for any other mode.
    pub considered: Vec<CandidateReport>,
    /// The strategies that `auto` did not compare, since the engine refuses them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOutReport>,
    /// The release of the engine whose limits apply, if the plan is not for tpc.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine_build: Option<EngineBuildReport>,
    /// Configurations that fit, the fastest first, if this one does not.
    pub advice: Vec<AdviceReport>,
    /// Findings.
    pub diagnostics: Vec<Diagnostic>,
}

/// A strategy that was not compared.
#[derive(Clone, Debug, Serialize)]
pub struct LeftOutReport {
    /// Its name, as in `considered`.
    pub name: String,
    /// The engine with its release.
    pub engine: String,
    /// The code of the reason.
    pub code: &'static str,
    /// The reason.
    pub reason: String,
    /// The evidence for it.
    pub basis: String,
}

impl From<&ExcludedMode> for LeftOutReport {
    fn from(l: &ExcludedMode) -> LeftOutReport {
        LeftOutReport {
            name: l.name.clone(),
            engine: l.engine.clone(),
            code: l.reason.code.id,
            reason: l.reason.does(),
            basis: l.reason.basis.to_string(),
        }
    }
}

/// The release of an engine, and the source of its facts.
#[derive(Clone, Debug, Serialize)]
pub struct EngineBuildReport {
    /// The engine.
    pub engine: &'static str,
    /// Its version.
    pub version: &'static str,
    /// The source of the facts.
    pub source: &'static str,
    /// The back end of each device, if known.
    pub backends: Vec<Option<Backend>>,
}

impl EngineBuildReport {
    /// Reports the release that a placement is for; `None` for tpc.
    pub fn new(placement: &Placement) -> Option<EngineBuildReport> {
        (placement.engine != Engine::Tpc).then(|| EngineBuildReport {
            engine: placement.build.engine.name(),
            version: &placement.build.version,
            source: &placement.build.source,
            backends: placement.backends(),
        })
    }
}

/// A configuration that was planned and fits.
#[derive(Clone, Debug, Serialize)]
pub struct AdviceReport {
    /// The options that replace the given ones.
    pub options: String,
    /// Decoded tokens per second.
    pub decode_tps: f64,
    /// Prompt tokens per second.
    pub prompt_tps: f64,
    /// The depth, in tokens, that the speeds are estimated for: `--depth`, or else a quarter of the requested context.
    pub depth: u64,
    /// Always true, since only configurations that fit are listed.
    pub fits: bool,
    /// The part of its usable memory that the fullest device holds; `null` if the memory of every device is unknown.
    pub fullest: Option<f64>,
    /// Bytes on the host.
    pub host_bytes: u64,
    /// A description of the losses.
    pub price: String,
}

impl From<&Advice> for AdviceReport {
    fn from(a: &Advice) -> AdviceReport {
        AdviceReport {
            options: a.options.clone(),
            decode_tps: a.decode_tps,
            prompt_tps: a.prompt_tps,
            depth: a.depth,
            fits: true,
            fullest: a.fullest,
            host_bytes: a.host_bytes,
            price: a.price.clone(),
        }
    }
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
    /// Weights, packed as in the file.
    pub weights_bytes: u64,
    /// KV caches.
    pub kv_bytes: u64,
    /// Other states.
    pub state_bytes: u64,
    /// The additional bytes of stored weights, caches and states: the device's own formats, and gaps between buffers. It is
    /// negative if the formats save more.
    pub layout_bytes: i64,
    /// The memory for inputs, intermediate values and outputs of the largest batch.
    pub compute_bytes: u64,
    /// The part of `compute_bytes` for results of copies and collectives, at their own peak.
    pub staging_bytes: u64,
    /// Files that are loaded in addition to the model.
    #[serde(skip_serializing_if = "is_zero")]
    pub beside_bytes: u64,
    /// The sum of weights, caches, states, layout and compute, which form the program's arenas, and of other files.
    pub total_bytes: u64,
    /// The device's memory, if the topology states it.
    pub capacity_bytes: Option<u64>,
    /// Bytes of that memory that the plan leaves to the driver and the engine's own buffers.
    pub reserve_bytes: u64,
    /// The name of its card, if known.
    pub card: Option<String>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
const fn is_zero(bytes: &u64) -> bool {
    *bytes == 0
}

/// Memory that the host shares with devices of its machine.
#[derive(Clone, Debug, Serialize)]
pub struct PoolReport {
    /// The positions of these devices.
    pub devices: Vec<usize>,
    /// The bytes of the pool that the devices and the host take together.
    pub total_bytes: u64,
    /// The bytes of the pool.
    pub capacity_bytes: u64,
    /// Bytes that the plan leaves to the system and the drivers.
    pub reserve_bytes: u64,
}

/// A tensor of the plan.
#[derive(Clone, Debug, Serialize)]
pub struct TensorReport {
    /// Name in the file; for a cache, the state's name.
    pub name: String,
    /// Element type.
    pub dtype: &'static str,
    /// Sizes, axis 0 first.
    pub ne: [u64; RANK],
    /// Its place: `host`, a device, or a group such as `tp0`.
    pub place: String,
    /// Its sharding.
    pub sharding: ShardingReport,
    /// The positions of the devices that hold it or a part of it; empty for a tensor on the host.
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

/// The sharding of a tensor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ShardingReport {
    /// `mirrored` or `split`.
    pub kind: &'static str,
    /// The split axis.
    pub axis: Option<usize>,
    /// `[start, len]` per device, or a list of segments per device; empty if the tensor is not split.
    pub ranges: Ranges,
}

/// Ranges of indices along the split axis.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Ranges {
    /// One range per device; empty if the tensor is not split.
    Single(Vec<[u64; 2]>),
    /// Several segments per device.
    Segments(Vec<Vec<[u64; 2]>>),
}

impl Ranges {
    /// Returns the number of indices per device.
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
    /// A batch of one token.
    pub decode: TrafficReport,
    /// A batch of the largest size.
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
    /// The bytes of their operands, counting one participant each.
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

/// The part of the drafts in a plan. The plan's own numbers include it.
#[derive(Clone, Debug, Serialize)]
pub struct DraftsReport {
    /// Blocks that draft; each predicts one token.
    pub blocks: u64,
    /// Bytes per device.
    pub devices: Vec<DraftBytes>,
    /// Bytes on the host.
    pub host: DraftBytes,
    /// Transfers per batch.
    pub collectives: Collectives,
}

/// Bytes at one place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DraftBytes {
    /// Name.
    pub name: String,
    /// The weights of these blocks, without weights that they share with the model.
    pub weights_bytes: u64,
    /// Their KV caches.
    pub kv_bytes: u64,
}

/// Bytes of weights held more than once, beyond the first copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MirroredReport {
    /// Tensors that are whole on every device.
    pub whole_bytes: u64,
    /// Quantisation blocks that contain the boundary between two devices: both hold the block.
    pub edge_block_bytes: u64,
    /// Rows of KV heads that devices share.
    pub shared_head_bytes: u64,
}

impl MirroredReport {
    /// Sums the bytes of all causes.
    pub const fn total(&self) -> u64 {
        self.whole_bytes + self.edge_block_bytes + self.shared_head_bytes
    }
}

/// A strategy to divide the model, which `auto` compared with others.
#[derive(Clone, Debug, Serialize)]
pub struct CandidateReport {
    /// `none`, `layer`, `tensor`, or `layer of 2 × tensor of 4`.
    pub name: String,
    /// A batch of one token.
    pub decode_us: f64,
    /// A batch of the largest size.
    pub prefill_us: f64,
    /// Bytes of weights, caches and states on the fullest device.
    pub fullest_bytes: u64,
    /// True if these bytes fit the memory that the topology states.
    pub fits: bool,
    /// Microseconds per decoded token, with prompts and memory weighed in: the number that `auto` compares.
    pub cost_us: f64,
    /// True if `auto` chose this strategy.
    pub chosen: bool,
    /// Decoded tokens per second.
    pub decode_tps: f64,
    /// Prompt tokens per second.
    pub prompt_tps: f64,
    /// True if its speeds, of decoding and of prompts, differ from the chosen one's by less than the estimates' error.
    pub within_error: bool,
}

impl From<&Candidate> for CandidateReport {
    fn from(c: &Candidate) -> CandidateReport {
        CandidateReport {
            name: c.name.clone(),
            decode_us: c.estimate.decode_us,
            prefill_us: c.estimate.prefill_us,
            fullest_bytes: c.fullest,
            fits: c.fits,
            cost_us: c.cost,
            chosen: c.chosen,
            decode_tps: c.estimate.decode_tps,
            prompt_tps: c.estimate.prompt_tps,
            within_error: c.within_error,
        }
    }
}

/// The work of the search for splits.
#[derive(Clone, Debug, Serialize)]
pub struct SearchReport {
    /// Distinct layers, and the prologue and epilogue, that were planned.
    pub distinct: usize,
    /// Sets of splits priced.
    pub priced: u64,
    /// True if all sets of splits were priced.
    pub optimal: bool,
    /// The largest possible excess cost of the choice, as a fraction of the cheapest cost; 0 if the choice is the cheapest.
    pub at_most_above: f64,
}

/// The transfers of the sharded graph before and after rewriting, and the rules that applied.
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
    /// True if the rules reached a fixed point in every section.
    pub saturated: bool,
    /// Matches per rule, of the rules that matched in a distinct section.
    pub rules: BTreeMap<&'static str, usize>,
}

impl PlanReport {
    /// Returns the report with these findings, and the verdict that follows from them.
    pub fn with_findings(mut self, findings: Vec<Diagnostic>) -> PlanReport {
        self.diagnostics = findings;
        if self.has_errors() {
            self.verdict = "error";
        }
        self
    }

    /// Checks that a finding is an error.
    pub fn has_errors(&self) -> bool {
        self.diagnostics
            .iter()
            .any(|d| d.severity == Severity::Error)
    }
}
