//! An option of a program: spellings, arguments and the setting that it changes.

/// A setting. Several options may change the same setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Setting {
    /// The model's file.
    Model,
    /// A remote model.
    Remote,
    /// The context size.
    CtxSize,
    /// Tokens per logical batch.
    Batch,
    /// Tokens per physical batch.
    Ubatch,
    /// Sequences served at once.
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
    /// RPC servers.
    Rpc,
    /// Tensor overrides: buffer types by name.
    Override,
    /// All experts on the host.
    CpuMoe,
    /// Experts of the first layers on the host.
    NCpuMoe,
    /// Feed-forward weights of the first layers on the host.
    NCpuFfn,
    /// Layers on the devices.
    GpuLayers,
    /// The K cache type.
    CacheK,
    /// The V cache type.
    CacheV,
    /// KV caches on the devices: on or off.
    KvOffload,
    /// Full-length caches for layers with a window: on or off.
    FullWindow,
    /// Fitting of missing settings to the memory: on or off.
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
    /// The inverse of the scaling factor.
    RopeFrequency,
    /// The context before scaling.
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
    /// None: switches the setting on.
    Switch,
    /// None: switches the setting off (`--no-…`).
    NegatedSwitch,
    /// One.
    One,
    /// Two.
    Two,
    /// `on`, `off` or `auto`.
    OnOffAuto,
}

/// An option with all spellings.
#[derive(Debug)]
pub struct OptionSpec {
    /// The spellings.
    pub names: &'static [&'static str],
    /// The environment variable, or empty.
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
