//! StableLM 1 and 2.

use crate::description::{Arch, AttentionForm, NormForm, QkNorm, Residual};

/// `stablelm`: only the 12B model normalises heads, each with its own weights, and has parallel sublayers.
pub(crate) const STABLELM: Arch = Arch {
    name: "stablelm",
    norm: NormForm::LAYER,
    residual: Residual::ByFfnNorm,
    attention: AttentionForm {
        qk_norm: QkNorm::OptionalHeads,
        ..Arch::CLASSIC.attention
    },
    ..Arch::CLASSIC
};
