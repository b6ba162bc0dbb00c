//! The numbers that determine a release's memory use.

use serde::{Deserialize, Serialize};

use super::{Backend, Basis};

/// The memory rules of a release.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemoryFacts {
    /// The number of cache cells is a multiple of this number.
    pub cell_step: u64,
    /// The alignment of tensors on devices, in bytes.
    pub device_alignment: u64,
    /// The alignment of tensors on the host, in bytes.
    pub host_alignment: u64,
    /// The least number of batch rows at which a device computes products with host weights.
    pub offload_rows: u64,
    /// Copies of the inputs of each device in a pipeline.
    pub pipeline_copies: usize,
    /// Tokens drafted at once if the command omits the number.
    pub drafted_tokens: u64,
    /// The granule, in elements, of the tensor split of feed-forward matrices.
    pub split_step: u64,
    /// Architectures whose batches hold tokens alone. Others have room for tokens and embeddings in one batch.
    pub tokens_alone: Vec<String>,
    /// Back ends that differ from plain ones.
    pub backends: Vec<BackendMemory>,
    /// The evidence.
    pub basis: Basis,
}

/// The use that a back end makes of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct BackendMemory {
    /// The back end.
    pub backend: Backend,
    /// True if copies overlap computation. Layers on several devices then form a pipeline.
    pub pipelines: bool,
    /// True if large batches compute on a device although the weights are on the host.
    pub offloads: bool,
    /// True if attention reads a quantised cache through a copy in f16.
    pub copies_caches: bool,
}

impl MemoryFacts {
    /// Returns the rules of the back end that all devices share, or the default rules.
    pub fn of(&self, backends: &[Option<Backend>]) -> BackendMemory {
        let known = backends.first().copied().flatten();
        let shared = known.filter(|b| backends.iter().all(|x| *x == Some(*b)));
        let found = self.backends.iter().find(|m| Some(m.backend) == shared);
        found.copied().unwrap_or(BackendMemory {
            backend: shared.unwrap_or(Backend::Cpu),
            pipelines: false,
            offloads: true,
            copies_caches: false,
        })
    }
}
