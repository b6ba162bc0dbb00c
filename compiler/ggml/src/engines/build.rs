//! One release of an engine: the facts behind tpc's statements about it, read from the release's own file.

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
    /// The source that the facts come from.
    pub source: String,
    /// The version of the RPC protocol that it speaks.
    pub rpc_protocol: Option<(u8, u8, u8)>,
    /// The split modes that it takes.
    pub split_modes: Vec<String>,
    /// Split modes that the release has dropped, or with which it does not load a model.
    #[serde(default)]
    pub dropped_modes: Vec<DroppedMode>,
    /// The split of tensors.
    pub tensor_split: TensorSplit,
    /// Its defaults.
    pub defaults: Defaults,
    /// Options that the release has removed.
    #[serde(default)]
    pub removed_options: Vec<RemovedOption>,
    /// Types of KV caches with attention kernels in default builds, per back end.
    pub cache_kernels: Vec<CacheKernels>,
    /// Memory facts of the release. `None` if they are neither measured nor read from the source.
    #[serde(default)]
    pub memory: Option<MemoryFacts>,
    /// The 16-bit reductions over devices. `None` if the release has no such reductions.
    #[serde(default)]
    pub short_sums: Option<ShortSums>,
}

/// A split mode that the release has dropped.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct DroppedMode {
    /// The mode.
    pub mode: String,
    /// The build since which it does not work.
    pub since: String,
    /// The engine's words.
    pub says: String,
    /// The evidence.
    pub basis: Basis,
}

/// An option that the release has removed. The program stops if it is given.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RemovedOption {
    /// Its spellings.
    pub names: Vec<String>,
    /// The option that replaces it.
    pub instead: String,
}

/// The split of tensors over devices.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TensorSplit {
    /// Its word for `-sm`.
    pub mode: String,
    /// Most devices; `None` for no limit that is known.
    pub max_devices: Option<usize>,
    /// True if it needs flash attention.
    pub needs_flash_attention: bool,
    /// Evidence that all devices must share one back end. `None` if they may differ.
    pub one_backend: Option<Basis>,
    /// Architectures that it refuses by name.
    #[serde(default)]
    pub refused: Vec<String>,
    /// The architectures that the mode splits; others are split by layers. `None` if the release has no such list.
    #[serde(default)]
    pub listed: Option<Vec<String>>,
    /// The conditions that make a run fail, in the order in which a run meets them.
    #[serde(default)]
    pub failures: Vec<Failure>,
}

/// A condition under which the split of tensors fails.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failure {
    /// The condition.
    pub when: Condition,
    /// The architectures that the failure applies to. An empty list means all architectures.
    #[serde(default)]
    pub archs: Vec<String>,
    /// The end of the run.
    pub does: Outcome,
    /// The engine's own words, or the place in its source.
    #[serde(default)]
    pub says: Option<String>,
    /// The evidence.
    pub basis: Basis,
    /// True if the failure applies only to the back end of the evidence. Otherwise the failing code belongs to the
    /// split, which all back ends share.
    #[serde(default)]
    pub only_there: bool,
}

/// The defaults for settings that a command omits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Defaults {
    /// Tokens of a logical batch.
    pub batch: u64,
    /// Tokens of a physical batch.
    pub ubatch: u64,
    /// Sequences that a server serves at once.
    pub slots: u64,
    /// True if slots share one cache of the whole context.
    pub shared_cache: bool,
}

/// Sums over devices that are added in bf16.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ShortSums {
    /// The back end.
    pub backend: Backend,
    /// The number of devices that it applies to.
    pub devices: usize,
    /// The least number of elements that it applies to.
    pub elements: u64,
    /// The environment variable that switches it off.
    pub off: String,
    /// The evidence.
    pub basis: Basis,
}

impl Build {
    /// Returns its name with its version: `llama.cpp 0.8.0`.
    pub fn name(&self) -> String {
        format!("{} {}", self.engine.name(), self.version)
    }

    /// Returns true if it takes this split mode.
    pub fn has_mode(&self, mode: &str) -> bool {
        self.split_modes.iter().any(|m| m == mode)
    }

    /// Returns the entry for a split mode that the release has dropped.
    pub fn dropped_mode(&self, mode: &str) -> Option<&DroppedMode> {
        self.dropped_modes.iter().find(|d| d.mode == mode)
    }

    /// Returns the kernels of a back end, or `None` if they are unknown.
    pub fn cache_kernels(&self, backend: Backend) -> Option<&CacheKernels> {
        self.cache_kernels.iter().find(|c| c.backend == backend)
    }
}
