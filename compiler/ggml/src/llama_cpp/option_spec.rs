//! An option of a program: its spellings, its arguments and the setting that it changes.

/// The setting that an option changes; several options may change one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Setting {
    /// The model's file.
    Model,
    /// A model that is downloaded.
    Remote,
    /// The context size.
    CtxSize,
    /// Tokens per logical batch.
    Batch,
    /// Tokens per physical batch, which is computed at once.
    Ubatch,
    /// Sequences that are served at once.
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
    /// Servers whose devices are used.
    Rpc,
    /// Buffer types of tensors by name.
    Override,
    /// All experts on the host.
    CpuMoe,
    /// Experts of the first layers on the host.
    NCpuMoe,
    /// Feed-forward weights of the first layers on the host.
    NCpuFfn,
    /// Layers on the devices.
    GpuLayers,
    /// Element type of the K cache.
    CacheK,
    /// Element type of the V cache.
    CacheV,
    /// KV caches on the devices: on or off.
    KvOffload,
    /// All cells in caches of layers with a window: on or off.
    FullWindow,
    /// Fitting of missing settings to the memory: on or off.
    Fit,
    /// A model that drafts tokens.
    Draft,
    /// The kind of drafting.
    Speculation,
    /// An encoder of images or sound.
    Projector,
    /// An adapter or control vector.
    Adapter,
    /// Metadata that are changed while loading.
    OverrideKv,
    /// The rotation scaling method: `none`, `linear` or `yarn`.
    RopeScaling,
    /// The scaling factor of the rotation.
    RopeFactor,
    /// The inverse of that factor.
    RopeFrequency,
    /// The context before scaling.
    YarnContext,
    /// Other settings of the rotation.
    Rope,
    /// Tokens of a benchmark's prompts.
    PromptTokens,
    /// Tokens that a benchmark generates.
    GeneratedTokens,
    /// Tokens of prompts and generation in one test of a benchmark.
    PromptAndGenerated,
    /// Tokens in the cache before a benchmark's test.
    Depth,
    /// Memory that a benchmark leaves free; with it settings are fitted.
    FitTarget,
    /// KV caches on the host: 1 or 0.
    NoKvOffload,
    /// A setting that does not affect the plan.
    Other,
}

/// The arguments of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arity {
    /// No argument: the option switches its setting on.
    Switch,
    /// No argument: the option switches its setting off (`--no-…`).
    NegatedSwitch,
    /// One.
    One,
    /// Two.
    Two,
    /// `on`, `off` or `auto`.
    OnOffAuto,
}

/// An option in all its spellings.
#[derive(Debug)]
pub struct OptionSpec {
    /// Its spellings.
    pub names: &'static [&'static str],
    /// The environment variable that stands for it; empty without one.
    pub env: &'static str,
    /// Its arguments.
    pub arity: Arity,
    /// The setting that it changes.
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
