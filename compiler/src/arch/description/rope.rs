//! Rotary position embedding.

use tpc_ir::op::RopeMode;

/// Rotary position embedding.
#[derive(Clone, Debug, PartialEq)]
pub struct RopeForm {
    /// Pairing.
    pub mode: RopeMode,
    /// Tensors of factors by which frequencies are divided, always optional.
    pub factors: RopeFactors,
    /// The rotation in layers with a sliding window.
    pub windowed: WindowedRope,
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
    /// The same base without scaling.
    Unscaled,
    /// Without scaling, and the base of `rope.freq_base_swa` or else this.
    Local(f32),
}
