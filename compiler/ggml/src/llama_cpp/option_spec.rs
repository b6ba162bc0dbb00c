/// A setting. Several options may change the same setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Setting {
    /// The model's file.
    Model,
    /// A model that is not a local file.
    Remote,
    /// The context size.
    CtxSize,
    /// Tokens per logical batch.
    Batch,
    /// Tokens per physical batch.
    Ubatch,
    /// The number of sequences that are served in parallel.
    Parallel,
    /// Fused attention: on, off or auto.
    FlashAttention,
    /// The split mode: `none`, `layer`, `row` or `tensor`.
    SplitMode,
    /// Proportions of the devices.
    TensorSplit,
    /// The device for tensors that are not split.
    MainGpu,
    /// The devices.
    Devices,
    /// The addresses of RPC servers.
    Rpc,
    /// Buffer types for tensors, by name.
    Override,
    /// All experts on the host: on or off.
    CpuMoe,
    /// The number of first layers whose experts are on the host.
    NCpuMoe,
    /// The number of first layers whose feed-forward weights are on the host.
    NCpuFfn,
    /// The number of layers on the devices.
    GpuLayers,
    /// The K cache type.
    CacheK,
    /// The V cache type.
    CacheV,
    /// KV caches on the devices: on or off.
    KvOffload,
    /// Full-length caches for layers with a window: on or off.
    FullWindow,
    /// The choice of missing settings to fit the memory: on or off.
    Fit,
    /// A draft model.
    Draft,
    /// The kind of drafting.
    Speculation,
    /// An image or sound encoder.
    Projector,
    /// An adapter or control vector.
    Adapter,
    /// Overridden metadata.
    OverrideKv,
    /// The RoPE scaling method: `none`, `linear` or `yarn`.
    RopeScaling,
    /// The RoPE scaling factor.
    RopeFactor,
    /// The inverse of the RoPE scaling factor.
    RopeFrequency,
    /// The context before RoPE scaling, in tokens.
    YarnContext,
    /// Other RoPE settings.
    Rope,
    /// A benchmark's prompt tokens.
    PromptTokens,
    /// A benchmark's generated tokens.
    GeneratedTokens,
    /// A benchmark's tokens of prompt and generation in one test.
    PromptAndGenerated,
    /// A benchmark's tokens in the cache before a test.
    Depth,
    /// Memory that a benchmark leaves free; enables fitting.
    FitTarget,
    /// KV caches on the host: 1 or 0.
    NoKvOffload,
    /// A setting without effect on the plan.
    Other,
}

/// An option's arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arity {
    /// No argument; the option switches the setting on.
    Switch,
    /// No argument; the option switches the setting off (`--no-…`).
    NegatedSwitch,
    /// One argument.
    One,
    /// Two arguments.
    Two,
    /// `on`, `off` or `auto`.
    OnOffAuto,
}

/// An option and its spellings.
#[derive(Debug)]
pub struct OptionSpec {
    /// The spellings.
    pub names: &'static [&'static str],
    /// The environment variable; empty if there is none.
    pub env: &'static str,
    /// The arguments.
    pub arity: Arity,
    /// The setting.
    pub setting: Setting,
}

pub(super) const fn option(
    setting: Setting,
    arity: Arity,
    env: &'static str,
    names: &'static [&'static str],
) -> OptionSpec {
    OptionSpec {
        names,
        env,
        arity,
        setting,
    }
}
