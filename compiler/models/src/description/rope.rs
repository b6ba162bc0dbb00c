//! Rotary position embedding.

use tpc_ir::op::RopeMode;

use super::models::Models;

/// Rotary position embedding.
#[derive(Clone, Debug, PartialEq)]
pub struct RopeForm {
    /// The elements that form a pair.
    pub mode: RopeMode,
    /// The condition under which tokens have several positions.
    pub sections: Sections,
    /// The base of the frequencies.
    pub base: RopeBase,
    /// The layers that rotate.
    pub layers: RopeLayers,
    /// Factors that divide the frequencies. Their tensors are optional.
    pub factors: RopeFactors,
    /// The rotation in layers with a sliding window.
    pub windowed: WindowedRope,
    /// The place of YaRN's factor.
    pub yarn: YarnFactor,
    /// YaRN's fast bound, used if the file does not have `rope.scaling.yarn_beta_fast`.
    pub beta_fast: f32,
}

/// The place of YaRN's factor, which is `m(x) = 1 + 0.1 x ln(s)` for a context extended by the factor `s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum YarnFactor {
    /// The rotated elements: `m(1)`, or `m(1) / m(x)` if `rope.scaling.yarn_log_multiplier` is `x`.
    OnElements,
    /// The logits of attention: `m(x)²`. `rope.scaling.yarn_log_multiplier` is a tenth of `x`.
    OnLogits,
    /// No factor: the rotated elements keep their length, and the keys are ignored.
    None,
}

/// The condition under which tokens have several positions: in time, height and width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sections {
    /// Never; `rope.dimension_sections` is ignored.
    Ignored,
    /// If the first two of `rope.dimension_sections` are above 0. Pairs are then as in [`RopeMode::Mrope`].
    Mrope,
    /// Always, by `rope.dimension_sections`. Pairs are as in [`RopeMode::Imrope`].
    Imrope,
}

/// The base of the frequencies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RopeBase {
    /// `rope.freq_base`
    Given,
    /// 10,000 without scaling, and all elements rotate. The keys are ignored.
    Fixed,
    /// `rope.freq_base`, times `rope.scaling.alpha` to the power of `d / (d - 2)` for heads of `d` elements, if that key
    /// is present and above 0.
    TimesAlpha,
    /// `attention.compress_rope_freq_base`
    OfBlocks,
}

/// The layers that rotate their queries and keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RopeLayers {
    /// All.
    All,
    /// No layer: the elements that other models rotate are ordinary elements. For latent attention, whose heads share
    /// them.
    None,
    /// All layers in these models, no layer in others.
    AllIn(Models),
    /// The layers that `attention.rope_pattern` lists. In a file without that key: all layers, or no layer if
    /// `rope.scaling.finetuned` is false.
    ///
    /// A file with both keys follows the pattern. llama.cpp writes the pattern of a model in memory, and writes `false`
    /// for a flag that it did not read.
    Listed,
    /// The layers that `attention.rope_pattern` lists; all without a list.
    ListedOrAll,
    /// All but the last of every this many.
    AllButEvery(u32),
    /// All but the last of every this many, or all in a model without windows.
    AllButEveryIfWindowed(u32),
    /// All but the first of every this many. All in a model without windows, or of just this many layers.
    AllButFirstOfEveryIfWindowed(u32),
    /// The layers with a window, or all in a model without windows.
    Windowed,
    /// The layers with a window, and the first `leading_dense_block_count`.
    WindowedOrLeading,
    /// The layers with a window.
    OnlyWindowed,
}

/// The usual form of the factors that divide the frequencies. Unless [`Self::None`], either form is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RopeFactors {
    /// No factors.
    None,
    /// `rope_freqs`
    One,
    /// `rope_factors_long` for contexts longer than the original one, `rope_factors_short` for others.
    ByContext,
}

/// The rotation in layers with a sliding window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WindowedRope {
    /// The same as in the others.
    Same,
    /// The same except for the base, which is `rope.freq_base_swa` if that key is present.
    OwnBase,
    /// The same base without scaling or factors.
    Unscaled,
    /// Without scaling or factors, with the base `rope.freq_base_swa` or else the same.
    UnscaledOwnBase,
    /// Without scaling. The base is `rope.freq_base_swa`, or this number without that key. The factor on the rotated
    /// elements is that of the other layers.
    Local(f32),
    /// Without scaling or factors, with the base `rope.freq_base`. The other layers have a base of their own.
    UnscaledPlainBase,
}
