//! Rotary position embedding.

use tpc_ir::op::RopeMode;

use super::models::Models;

/// Rotary position embedding.
#[derive(Clone, Debug, PartialEq)]
pub struct RopeForm {
    /// Pairing.
    pub mode: RopeMode,
    /// Whether tokens may have more positions than one.
    pub sections: Sections,
    /// Which layers rotate.
    pub layers: RopeLayers,
    /// Tensors of factors by which frequencies are divided, always optional.
    pub factors: RopeFactors,
    /// The rotation in layers with a sliding window.
    pub windowed: WindowedRope,
    /// What YaRN multiplies.
    pub yarn: YarnFactor,
}

/// What YaRN's factor multiplies. With a context that is `s` times as long it is `m(x) = 1 + 0.1 x ln(s)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum YarnFactor {
    /// The rotated elements, by `m(1)`, or by `m(1) / m(x)` where `rope.scaling.yarn_log_multiplier` is `x`.
    OnElements,
    /// The logits of attention, by `m(x)²`, where `rope.scaling.yarn_log_multiplier` is a tenth of `x`.
    OnLogits,
}

/// Whether tokens may have more positions than one: in time, height and width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sections {
    /// Never; `rope.dimension_sections` is ignored.
    Ignored,
    /// Where the first two of `rope.dimension_sections` are above 0; pairs are then as in [`RopeMode::Mrope`].
    Mrope,
    /// Always; `rope.dimension_sections` must say which, and pairs are as in [`RopeMode::Imrope`].
    Imrope,
}

/// Which layers rotate their queries and keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RopeLayers {
    /// All.
    All,
    /// All in these models, none in others.
    AllIn(Models),
    /// All, or none where `rope.scaling.finetuned` is false.
    AllIfFinetuned,
    /// All but the last of every so many.
    AllButEvery(u32),
    /// All but the last of every so many, or all in a model without windows.
    AllButEveryIfWindowed(u32),
    /// Those with a window, or all in a model without windows.
    Windowed,
}

/// Factors by which frequencies are divided, as files usually hold them; where some are used, either form is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RopeFactors {
    /// Never used.
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
    /// The same base without scaling or factors.
    Unscaled,
    /// Without scaling or factors, and the base of `rope.freq_base_swa` or else this.
    Local(f32),
}
