//! Phi 1 to 4, and Phi 3.5's mixture of experts.

use tpc_ir::op::{Glu, GluKind, UnaryKind};

use crate::description::{
    Activation, Arch, AttentionForm, BlockNorms, ExpertForm, Experts, FfnForm, HeadForm, NormForm,
    Presence, QkvForm, Residual, RopeFactors, RopeForm, ScaleOn, Window,
};

/// `phi2`: also Phi 1 and 1.5.
pub(crate) const PHI2: Arch = Arch {
    name: "phi2",
    norm: NormForm::LAYER,
    norms: BlockNorms::SHARED,
    residual: Residual::Parallel,
    attention: AttentionForm {
        qkv_bias: Presence::Required,
        out_bias: Presence::Required,
        scale_on: ScaleOn::Queries,
        ..Arch::CLASSIC.attention
    },
    ffn: FfnForm {
        activation: Activation::Plain(&[UnaryKind::Gelu]),
        bias: Presence::Required,
        ..Arch::CLASSIC.ffn
    },
    head: HeadForm {
        bias: Presence::Required,
        ..Arch::CLASSIC.head
    },
    ..Arch::CLASSIC
};

/// `phi3`: every layer has the file's window, as the model's authors define it. llama.cpp ignores the window.
pub(crate) const PHI3: Arch = Arch {
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

pub(crate) const PHIMOE: Arch = Arch {
    name: "phimoe",
    norm: NormForm {
        bias: Presence::Required,
        ..Arch::CLASSIC.norm
    },
    attention: AttentionForm {
        out_bias: Presence::Required,
        rope: Some(RopeForm {
            factors: RopeFactors::ByContext,
            ..Arch::CLASSIC_ROPE
        }),
        scale_on: ScaleOn::Queries,
        ..Arch::CLASSIC.attention
    },
    ffn: FfnForm {
        experts: Experts::Always(ExpertForm::MIXTRAL),
        ..Arch::CLASSIC.ffn
    },
    head: HeadForm {
        bias: Presence::Required,
        ..Arch::CLASSIC.head
    },
    ..Arch::CLASSIC
};
