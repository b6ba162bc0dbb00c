use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use tpc_ggml::engines::Backend;
use tpc_ir::RANK;
use tpc_passes::footprint::Traffic;
use tpc_passes::machine::Engine;

use super::bits::BitsReport;
use super::caches::CachesReport;
use super::cluster::ClusterReport;
use super::commands::Commands;
use super::estimate::EstimateReport;
use super::machine::MachineReport;
use super::step::StepReport;
use super::why::report::{CostReport, WhyReport};
use crate::advice::Advice;
use crate::beside::ExtraFileMemory;
use crate::pipeline::{Candidate, ExcludedMode};
use crate::placement::Placement;
use tpc_diag::{Diagnostic, FormatVersion, Severity, Verdict};

/// The object that `plan --format json` prints. Keys may be added, but never changed.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PlanReport {
    /// Format version.
    pub tpc: FormatVersion,
    /// The model.
    pub model: ModelReport,
    /// `error` if a finding is an error.
    pub verdict: Verdict,
    /// The machine.
    pub machine: MachineReport,
    /// Commands that run the plan.
    pub commands: Commands,
    /// The planned split mode: `none`, `layer`, `tensor` or `hybrid`.
    #[schemars(extend("enum" = ["none", "layer", "tensor", "hybrid"]))]
    pub split_mode: &'static str,
    /// Bytes per device.
    pub devices: Vec<DeviceReport>,
    /// Bytes on the host.
    pub host: DeviceReport,
    /// Every used tensor of the file, then every cache.
    pub tensors: Vec<TensorReport>,
    /// Transfers per batch.
    pub collectives: Collectives,
    /// The traffic between machines; `None` on one machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<ClusterReport>,
    /// The KV caches; `None` without caches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caches: Option<CachesReport>,
    /// Comparison with one device's logits, bit by bit.
    pub bits: BitsReport,
    /// The part that drafts tokens; `None` without drafts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drafts: Option<DraftsReport>,
    /// Memory that the host shares with devices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool: Option<PoolReport>,
    /// Additional files.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<ExtraFileMemory>,
    /// Estimated times.
    pub estimate: EstimateReport,
    /// Predicted times of tpc's kernels, if the devices are cards and the engine is tpc.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<StepReport>,
    /// Bytes of weights beyond the first copy.
    pub mirrored_bytes: u64,
    /// Bytes of weights beyond the first copy, by cause.
    pub mirrored: MirroredReport,
    /// The copies by tensor; empty unless they take more than three per cent of the model.
    pub copies: Vec<CopiesReport>,
    /// The search for splits.
    pub search: SearchReport,
    /// Collectives and copies before and after rewriting.
    pub rewriting: RewritingReport,
    /// Explanations for `--why`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub why: Vec<WhyReport>,
    /// Strategies that `auto` compared; empty for other modes.
    pub considered: Vec<CandidateReport>,
    /// Strategies that the engine refuses.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOutReport>,
    /// The release whose limits apply, if the plan is not for tpc.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine_build: Option<EngineBuildReport>,
    /// Fitting configurations, the fastest first, if the plan does not fit.
    pub advice: Vec<AdviceReport>,
    /// Findings.
    pub diagnostics: Vec<Diagnostic>,
}

/// A strategy that the engine refuses.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct LeftOutReport {
    /// The name, as in `considered`.
    pub name: String,
    /// The engine and its release.
    pub engine: String,
    /// Diagnostic code of the reason.
    pub code: &'static str,
    /// The reason.
    pub reason: String,
    /// The evidence for the reason.
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

/// An engine's release.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct EngineBuildReport {
    /// The engine.
    pub engine: &'static str,
    /// The version.
    pub version: &'static str,
    /// The source of tpc's facts about the release.
    pub source: &'static str,
    /// Each device's back end, if known.
    pub backends: Vec<Option<Backend>>,
}

impl EngineBuildReport {
    /// Reports a placement's release; `None` for tpc.
    pub fn new(placement: &Placement) -> Option<EngineBuildReport> {
        (placement.engine != Engine::Tpc).then(|| EngineBuildReport {
            engine: placement.build.engine.name(),
            version: &placement.build.version,
            source: &placement.build.source,
            backends: placement.backends(),
        })
    }
}

/// A planned configuration that fits.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct AdviceReport {
    /// Options that replace the given ones.
    pub options: String,
    /// Decoded tokens per second.
    pub decode_tps: f64,
    /// Prompt tokens per second.
    pub prompt_tps: f64,
    /// Depth of the speeds, in tokens: `--depth`, or a quarter of the requested context.
    pub depth: u64,
    /// True, because only fitting configurations are advised.
    pub fits: bool,
    /// The used fraction of the fullest device's memory; `null` if no memory is known.
    pub fullest: Option<f64>,
    /// Bytes on the host.
    pub host_bytes: u64,
    /// The losses as text.
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
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ModelReport {
    /// The file.
    pub path: String,
    /// Architecture.
    pub arch: String,
    /// Name.
    pub name: String,
    /// Layers.
    pub n_layer: u64,
    /// Elements of all tensors in the file.
    pub n_params: u64,
    /// Bytes of all tensors in the file.
    pub bytes: u64,
    /// KV cache cells.
    pub n_ctx: u64,
    /// Bytes of tensors that the model does not use.
    pub unused_bytes: u64,
}

/// Bytes at one place.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DeviceReport {
    /// Name.
    pub name: String,
    /// The kind of the place.
    #[schemars(extend("enum" = ["cpu", "cuda", "generic", "host"]))]
    pub kind: &'static str,
    /// Weights, packed as in the file.
    pub weights_bytes: u64,
    /// KV caches.
    pub kv_bytes: u64,
    /// States other than KV caches.
    pub state_bytes: u64,
    /// Additional bytes of weights, caches and states: the device's formats, and gaps between buffers. Negative if the
    /// formats save more than the gaps.
    pub layout_bytes: i64,
    /// Inputs, intermediate values and outputs of the largest batch.
    pub compute_bytes: u64,
    /// The part of `compute_bytes` for copies and collectives, at its own peak.
    pub staging_bytes: u64,
    /// Bytes of additional files.
    #[serde(skip_serializing_if = "is_zero")]
    pub beside_bytes: u64,
    /// Bytes of weights, caches, states, layout and compute, which form the program's arenas, and of additional files.
    pub total_bytes: u64,
    /// The device's memory, if known.
    pub capacity_bytes: Option<u64>,
    /// Bytes reserved for the driver and the engine's buffers.
    pub reserve_bytes: u64,
    /// The card, if known.
    pub card: Option<String>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
const fn is_zero(bytes: &u64) -> bool {
    *bytes == 0
}

/// Memory that the host shares with devices.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PoolReport {
    /// Positions of the devices that share the pool.
    pub devices: Vec<usize>,
    /// Used bytes of devices and host.
    pub total_bytes: u64,
    /// Bytes of the pool.
    pub capacity_bytes: u64,
    /// Bytes reserved for the system and the drivers.
    pub reserve_bytes: u64,
}

/// A tensor of the plan.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct TensorReport {
    /// Name in the file, or the state's name.
    pub name: String,
    /// Element type.
    pub dtype: &'static str,
    /// Sizes, axis 0 first.
    pub ne: [u64; RANK],
    /// `host`, a device, or a device group such as `tp0`.
    pub place: String,
    /// The sharding.
    pub sharding: ShardingReport,
    /// Positions of the devices with a part; empty for the host.
    #[serde(skip)]
    pub devices: Vec<usize>,
    /// Bytes per device, or on the host.
    #[serde(skip)]
    pub bytes: Vec<u64>,
    /// The kind of the tensor.
    #[schemars(extend("enum" = ["weight", "state"]))]
    pub kind: &'static str,
    /// The layer.
    pub layer: Option<u32>,
}

/// The sharding of a tensor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ShardingReport {
    /// The kind of the sharding: `mirrored`, `split` into ranges, or `cells`: blocks of 64 cells, dealt to the devices in
    /// turn.
    #[schemars(extend("enum" = ["mirrored", "split", "cells"]))]
    pub kind: &'static str,
    /// The split axis.
    pub axis: Option<usize>,
    /// `[start, len]` or a list of segments per device; empty unless split into ranges.
    pub ranges: Ranges,
}

/// Index ranges along the split axis.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Ranges {
    /// One range per device; empty if not split.
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
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Collectives {
    /// Transfers of a batch of one token.
    pub decode: TrafficReport,
    /// Transfers of the largest batch.
    pub prefill: TrafficReport,
}

/// Transfers of one batch.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct TrafficReport {
    /// Number of all-reduces.
    pub all_reduce: u64,
    /// Number of all-gathers.
    pub all_gather: u64,
    /// Number of reduce-scatters.
    pub reduce_scatter: u64,
    /// Number of all-to-alls.
    pub all_to_all: u64,
    /// Number of copies between the host and devices.
    pub copies: u64,
    /// Operand bytes of one participant per transfer.
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

/// The part of a plan that drafts tokens. The plan's other numbers include it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DraftsReport {
    /// Number of drafting blocks; each predicts one token.
    pub blocks: u64,
    /// Bytes per device.
    pub devices: Vec<DraftBytes>,
    /// Bytes on the host.
    pub host: DraftBytes,
    /// Transfers per batch.
    pub collectives: Collectives,
}

/// Bytes at one place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DraftBytes {
    /// Name.
    pub name: String,
    /// Weights, without weights shared with the model.
    pub weights_bytes: u64,
    /// KV caches.
    pub kv_bytes: u64,
}

/// Bytes of weights beyond the first copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MirroredReport {
    /// Bytes of tensors that are whole on every device.
    pub whole_bytes: u64,
    /// Bytes of quantisation blocks that span two devices. Both devices hold them.
    pub edge_block_bytes: u64,
    /// Bytes of KV head rows that devices share.
    pub shared_head_bytes: u64,
}

impl MirroredReport {
    /// Sums the bytes of all causes.
    pub const fn total(&self) -> u64 {
        self.whole_bytes + self.edge_block_bytes + self.shared_head_bytes
    }
}

/// A strategy that `auto` compared.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CandidateReport {
    /// `none`, `layer`, `tensor`, or `layer of 2 × tensor of 4`.
    pub name: String,
    /// Time of a batch of one token.
    pub decode_us: f64,
    /// Time of the largest batch.
    pub prefill_us: f64,
    /// Stored bytes on the fullest device.
    pub fullest_bytes: u64,
    /// True if the strategy fits the memory.
    pub fits: bool,
    /// Cost in microseconds, which `auto` compares: the decoded token's time with prompts and the price of memory.
    pub cost_us: f64,
    /// True if the strategy is chosen.
    pub chosen: bool,
    /// Decoded tokens per second.
    pub decode_tps: f64,
    /// Prompt tokens per second.
    pub prompt_tps: f64,
    /// True if both speeds are within the estimates' error of the chosen strategy's speeds.
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

/// The search for splits.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SearchReport {
    /// Number of distinct sections.
    pub distinct: usize,
    /// Number of priced sets of splits.
    pub priced: u64,
    /// True if all sets of splits were priced.
    pub optimal: bool,
    /// Maximum relative distance of the chosen cost from the cheapest; 0 for the cheapest.
    pub at_most_above: f64,
}

/// Transfers before and after rewriting, and the rules that applied.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RewritingReport {
    /// Collectives before.
    pub collectives_before: usize,
    /// Collectives after.
    pub collectives_after: usize,
    /// Copies between places before.
    pub copies_before: usize,
    /// Copies between places after.
    pub copies_after: usize,
    /// True if the rules reached a fixed point everywhere.
    pub saturated: bool,
    /// Number of matches per rule in distinct sections.
    pub rules: BTreeMap<&'static str, usize>,
}

impl PlanReport {
    /// Adds findings, and sets the verdict accordingly.
    pub fn with_findings(mut self, findings: Vec<Diagnostic>) -> PlanReport {
        self.diagnostics = findings;
        if self.has_errors() {
            self.verdict = Verdict::Error;
        }
        self
    }

    /// True if a finding is an error.
    pub fn has_errors(&self) -> bool {
        self.diagnostics
            .iter()
            .any(|d| d.severity == Severity::Error)
    }
}

/// Copies of the tensors of one name in all layers.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CopiesReport {
    /// The name without the layer.
    pub tensor: String,
    /// The number of tensors.
    pub count: usize,
    /// The cause of the copies.
    #[schemars(extend("enum" = ["whole", "edge blocks", "kv heads"]))]
    pub cause: &'static str,
    /// Bytes beyond the first copy.
    pub bytes: u64,
    /// The factors and ops that keep the copies.
    pub reason: String,
    /// The cheapest split with less memory; `None` if every split takes as much.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leaner: Option<LeanerReport>,
}

/// A split with less memory, and its cost.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct LeanerReport {
    /// The split factor: `64 (experts)`.
    pub factor: String,
    /// Indices per device.
    pub lens: Vec<u64>,
    /// The cost of the plan, in the layers that would change.
    pub chosen: CostReport,
    /// The cost of the split in these layers.
    pub alternative: CostReport,
    #[serde(skip)]
    pub(super) layers: String,
}
