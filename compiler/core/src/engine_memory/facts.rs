//! The numbers of an engine's build that its memory depends on.

/// The memory rules of one build of an engine.
#[derive(Clone, Debug, PartialEq)]
pub struct MemoryFacts {
    /// The build.
    pub build: &'static str,
    /// Cells of a cache are counted in steps of so many.
    pub cell_step: u64,
    /// Tensors of devices begin at multiples of so many bytes.
    pub device_alignment: u64,
    /// Tensors of the host begin at multiples of so many bytes.
    pub host_alignment: u64,
    /// Rows of a batch from which on a device computes products with weights of the host.
    pub offload_rows: u64,
    /// Copies of the inputs of each device in a pipeline.
    pub pipeline_copies: usize,
    /// Sequences of a server whose command does not say them, in one cache.
    pub server_slots: u64,
    /// Tokens drafted at once where the command does not say it.
    pub drafted_tokens: u64,
    /// The smallest step by which a tensor split cuts rows of feed-forward matrices, in elements.
    pub split_step: u64,
    /// Architectures whose batches hold tokens alone. Others have room for tokens and embeddings in one batch.
    pub tokens_alone: &'static [&'static str],
}

/// llama.cpp 0.8.0, by its source and by runs of it (`tests/data/engine-memory`).
pub const LLAMA_CPP: MemoryFacts = MemoryFacts {
    build: "0.8.0",
    cell_step: 256,
    device_alignment: 128,
    host_alignment: 32,
    offload_rows: 32,
    pipeline_copies: 4,
    server_slots: 4,
    drafted_tokens: 3,
    split_step: 128,
    tokens_alone: &[
        "cogvlm",
        "deepseek4",
        "deepseek41",
        "granite-switch",
        "eagle3",
        "dflash",
        "gemma4-assistant",
        "limite",
    ],
};

/// What a device's back end offers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BackendMemory {
    /// Copies run beside computation, so that layers on several devices form a pipeline.
    pub pipelines: bool,
    /// Large batches compute on a device although the weights are on the host.
    pub offloads: bool,
    /// Attention to a quantised cache reads a copy of it in f16.
    pub copies_caches: bool,
}

impl BackendMemory {
    /// CUDA and ROCm.
    pub const CUDA: BackendMemory = BackendMemory {
        pipelines: true,
        offloads: true,
        copies_caches: true,
    };

    /// Devices of other kinds, and of those that nothing is known of.
    pub const PLAIN: BackendMemory = BackendMemory {
        pipelines: false,
        offloads: true,
        copies_caches: false,
    };
}
