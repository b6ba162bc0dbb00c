use serde::{Deserialize, Serialize};

use super::{Backend, Basis, CacheKernels, Condition, MemoryFacts, Outcome};
use crate::llama_cpp::Maker;

/// A release of an engine.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Build {
    /// The engine.
    pub engine: Maker,
    /// The version that `--engine llama.cpp@VERSION` names.
    pub version: String,
    /// The month of the release, or of the source revision that the facts come from.
    pub date: String,
    /// The source of the facts.
    pub source: String,
    /// The RPC protocol's version.
    pub rpc_protocol: Option<(u8, u8, u8)>,
    /// The supported split modes: the words for `-sm`.
    pub split_modes: Vec<String>,
    /// The split modes that the release has dropped.
    #[serde(default)]
    pub dropped_modes: Vec<DroppedMode>,
    /// The facts about the tensor split.
    pub tensor_split: TensorSplit,
    /// The values of omitted options.
    pub defaults: Defaults,
    /// The options that the release has removed.
    #[serde(default)]
    pub removed_options: Vec<RemovedOption>,
    /// The cache types with attention kernels in default builds, per back end.
    pub cache_kernels: Vec<CacheKernels>,
    /// The memory facts; `None` if unknown.
    #[serde(default)]
    pub memory: Option<MemoryFacts>,
    /// The 16-bit reductions, if any.
    #[serde(default)]
    pub short_sums: Option<ShortSums>,
}

/// A split mode that the release has dropped.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct DroppedMode {
    /// The mode.
    pub mode: String,
    /// The first build without the mode.
    pub since: String,
    /// The engine's message.
    pub says: String,
    /// The evidence.
    pub basis: Basis,
}

/// An option that stops the program because the release has removed it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RemovedOption {
    /// The spellings.
    pub names: Vec<String>,
    /// The replacement.
    pub instead: String,
}

/// The tensor split.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TensorSplit {
    /// The word for `-sm`.
    pub mode: String,
    /// The maximum number of devices, if known.
    pub max_devices: Option<usize>,
    /// True if the split needs flash attention.
    pub needs_flash_attention: bool,
    /// The evidence that all devices must share a back end; `None` if they may differ.
    pub one_backend: Option<Basis>,
    /// The architectures that the engine refuses by name.
    #[serde(default)]
    pub refused: Vec<String>,
    /// The architectures that the mode splits; others are split by layers. `None` without such a list.
    #[serde(default)]
    pub listed: Option<Vec<String>>,
    /// The conditions for a failure, in the order in which a run meets them.
    #[serde(default)]
    pub failures: Vec<Failure>,
}

/// A condition under which the tensor split fails.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failure {
    /// The condition.
    pub when: Condition,
    /// The affected architectures; empty for all.
    #[serde(default)]
    pub archs: Vec<String>,
    /// The outcome of the run.
    pub does: Outcome,
    /// The engine's message, or the place in the source.
    #[serde(default)]
    pub says: Option<String>,
    /// The evidence.
    pub basis: Basis,
    /// True if only the back end of the evidence fails; otherwise all back ends share the failing code.
    #[serde(default)]
    pub only_there: bool,
}

/// The defaults for omitted options.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Defaults {
    /// The logical batch, in tokens.
    pub batch: u64,
    /// The physical batch, in tokens.
    pub ubatch: u64,
    /// The number of sequences that a server serves in parallel.
    pub slots: u64,
    /// True if all slots share one KV cache.
    pub shared_cache: bool,
}

/// Reductions in bf16.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ShortSums {
    /// The back end.
    pub backend: Backend,
    /// The number of devices with bf16 reductions.
    pub devices: usize,
    /// The minimum number of elements of a bf16 reduction.
    pub elements: u64,
    /// The environment variable that disables bf16 reductions.
    pub off: String,
    /// The evidence.
    pub basis: Basis,
}

impl Build {
    /// Returns the name with the version: `llama.cpp 0.8.0`.
    pub fn name(&self) -> String {
        format!("{} {}", self.engine.name(), self.version)
    }

    /// True if the release supports this split mode.
    pub fn has_mode(&self, mode: &str) -> bool {
        self.split_modes.iter().any(|m| m == mode)
    }

    /// Returns the entry of a dropped split mode.
    pub fn dropped_mode(&self, mode: &str) -> Option<&DroppedMode> {
        self.dropped_modes.iter().find(|d| d.mode == mode)
    }

    /// Returns the attention kernels of a back end, if known.
    pub fn cache_kernels(&self, backend: Backend) -> Option<&CacheKernels> {
        self.cache_kernels.iter().find(|c| c.backend == backend)
    }
}
