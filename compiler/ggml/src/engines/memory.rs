use serde::{Deserialize, Serialize};

use super::{Backend, Basis};

/// The memory rules of a release.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemoryFacts {
    /// The number of cache cells is a multiple of this number.
    pub cell_step: u64,
    /// The tensor alignment on devices, in bytes.
    pub device_alignment: u64,
    /// The tensor alignment on the host, in bytes.
    pub host_alignment: u64,
    /// The minimum number of batch rows for which a device multiplies host weights.
    pub offload_rows: u64,
    /// The number of copies of each device's inputs in a pipeline.
    pub pipeline_copies: usize,
    /// The default number of drafted tokens.
    pub drafted_tokens: u64,
    /// The granule of the feed-forward split, in elements.
    pub split_step: u64,
    /// Architectures whose batches have room for tokens only. Other batches have room for tokens and embeddings.
    pub tokens_alone: Vec<String>,
    /// Back ends whose rules differ from the default.
    pub backends: Vec<BackendMemory>,
    /// The evidence.
    pub basis: Basis,
}

/// The memory rules of a back end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct BackendMemory {
    /// The back end.
    pub backend: Backend,
    /// True if copies overlap computation: layers on several devices form a pipeline.
    pub pipelines: bool,
    /// True if devices compute large batches with host weights.
    pub offloads: bool,
    /// True if attention copies a quantised cache to f16.
    pub copies_caches: bool,
}

impl MemoryFacts {
    /// Returns the rules of the devices' common back end, or the default rules.
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
