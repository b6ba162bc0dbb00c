use tpc_ir::op::RopeMode;

use super::models::Models;

/// Rotary position embedding.
#[derive(Clone, Debug, PartialEq)]
pub struct RopeForm {
    /// Elements that form a pair.
    pub mode: RopeMode,
    /// Condition for several positions per token.
    pub sections: Sections,
    /// Base of the frequencies.
    pub base: RopeBase,
    /// The rotated part of a head.
    pub part: RotatedPart,
    /// Layers that rotate.
    pub layers: RopeLayers,
    /// Optional divisors of the frequencies.
    pub factors: RopeFactors,
    /// Rotation in layers with a sliding window.
    pub windowed: WindowedRope,
    /// Place of YaRN's factor.
    pub yarn: YarnFactor,
    /// YaRN's fast bound without `rope.scaling.yarn_beta_fast`.
    pub beta_fast: f32,
}

/// Place of YaRN's factor, `m(x) = 1 + 0.1 x ln(s)` for a context extended by the factor `s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum YarnFactor {
    /// On the rotated elements: `m(1)`, or `m(1) / m(x)` with `x` from `rope.scaling.yarn_log_multiplier`.
    OnElements,
    /// On the logits of attention: `m(x)²`. `rope.scaling.yarn_log_multiplier` is a tenth of `x`.
    OnLogits,
    /// No factor; the keys are ignored.
    None,
}

/// Condition for several positions per token: time, height and width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sections {
    /// Never; `rope.dimension_sections` is ignored.
    Ignored,
    /// If the first two of `rope.dimension_sections` are above 0, with the pairs of [`RopeMode::Mrope`].
    Mrope,
    /// Always, by `rope.dimension_sections`, with the pairs of [`RopeMode::Imrope`].
    Imrope,
}

/// The rotated part of a head: its first elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RotatedPart {
    /// `rope.dimension_count` elements.
    Given,
    /// Half of [`Self::Given`] in layers with full attention.
    HalfIfFull,
    /// Half of the head, without scaling. Text has position 0 along the axes that rotate the other half.
    HalfOfHead,
}

/// Base of the frequencies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RopeBase {
    /// `rope.freq_base`
    Given,
    /// 10,000 without scaling, for all elements. The keys are ignored.
    Fixed,
    /// `rope.freq_base`, times `rope.scaling.alpha` to the power of `d / (d - 2)` for heads of `d` elements if
    /// `rope.scaling.alpha` is above 0.
    TimesAlpha,
    /// `attention.compress_rope_freq_base`
    OfBlocks,
}

/// Layers that rotate queries and keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RopeLayers {
    /// All layers.
    All,
    /// No layers. With latent attention, the part of the keys that all heads share is not rotated either.
    None,
    /// All layers in these models, no layers in others.
    AllIn(Models),
    /// The layers that `attention.rope_pattern` lists. Without this key: all layers, or no layers if
    /// `rope.scaling.finetuned` is false.
    ///
    /// A file with both keys follows the pattern: llama.cpp writes the pattern of a model in memory, and `false` for a
    /// flag that it did not read.
    Listed,
    /// The layers that `attention.rope_pattern` lists, or else all layers.
    ListedOrAll,
    /// Same as [`Self::ListedOrAll`], for latent attention: heads of the other layers have no rotated part.
    ListedOrPlain,
    /// All layers but the last of every `n`.
    AllButEvery(u32),
    /// All layers but the last of every `n`; all layers in a model without windows.
    AllButEveryIfWindowed(u32),
    /// All layers but the first of every `n`; all layers in a model without windows, or in a model of `n` layers.
    AllButFirstOfEveryIfWindowed(u32),
    /// The layers with a window; all layers in a model without windows.
    Windowed,
    /// The layers with a window, and the first `leading_dense_block_count`.
    WindowedOrLeading,
    /// The layers with a window.
    OnlyWindowed,
}

/// Usual form of the divisors of the frequencies. For [`Self::One`] and [`Self::ByContext`], tpc reads both forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RopeFactors {
    /// No factors.
    None,
    /// `rope_freqs`
    One,
    /// `rope_freqs`, in every file.
    Required,
    /// `rope_factors_long` for contexts above the original one, else `rope_factors_short`.
    ByContext,
}

/// Rotation in layers with a sliding window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WindowedRope {
    /// Same rotation as in other layers.
    Same,
    /// Base `rope.freq_base_swa`, if present.
    OwnBase,
    /// Same base, without scaling or factors.
    Unscaled,
    /// Base `rope.freq_base_swa` or else the same base, without scaling or factors.
    UnscaledOwnBase,
    /// Base `rope.freq_base_swa` or else this number, without scaling. The factor on rotated elements is the other
    /// layers' factor.
    Local(f32),
    /// Base `rope.freq_base`, without scaling or factors. The other layers have their own base.
    UnscaledPlainBase,
}
