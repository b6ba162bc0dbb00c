//! Phi 3 and 4.

use tpc_ir::op::{Glu, GluKind};

use super::description::{
    Activation, Arch, AttentionForm, FfnForm, HeadForm, Presence, QkvForm, RopeFactors, RopeForm,
    ScaleOn, Window,
};

/// `phi3`: fused projections, and frequency factors that depend on the context length. Every layer is windowed where
/// the file gives a window, as the model's authors define it; llama.cpp ignores the window.
pub(super) const PHI3: Arch = Arch {
    name: "phi3",
    attention: AttentionForm {
        qkv: QkvForm::Fused,
        rope: Some(RopeForm {
            factors: RopeFactors::ByContext,
            ..Arch::CLASSIC_ROPE
        }),
        scale_on: ScaleOn::Queries,
        window: Window::All,
        ..Arch::CLASSIC.attention
    },
    ffn: FfnForm {
        activation: Activation::GatedFused(Glu::new(GluKind::Swiglu)),
        ..Arch::CLASSIC.ffn
    },
    head: HeadForm {
        bias: Presence::Optional,
        ..Arch::CLASSIC.head
    },
    ..Arch::CLASSIC
};
