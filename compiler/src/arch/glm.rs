//! ChatGLM 2 and 3, GLM 4.

use tpc_ir::op::{Glu, GluKind, RopeMode};

use super::description::{
    Activation, Arch, AttentionForm, BlockNorms, FfnForm, QkvForm, RopeForm, Sections,
};

/// `chatglm`: fused projections, half of each head rotated. Also GLM 4 9B and Edge, as converted at first.
pub(super) const CHATGLM: Arch = Arch {
    name: "chatglm",
    attention: AttentionForm {
        qkv: QkvForm::Fused,
        rope: Some(RopeForm {
            mode: RopeMode::Norm,
            ..Arch::CLASSIC_ROPE
        }),
        ..Arch::CLASSIC.attention
    },
    ffn: FfnForm {
        activation: Activation::GatedFused(Glu::new(GluKind::Swiglu)),
        ..Arch::CLASSIC.ffn
    },
    ..Arch::CLASSIC
};

/// `glm4`: both halves normalise input and output. Models that see images give tokens positions in space.
pub(super) const GLM4: Arch = Arch {
    name: "glm4",
    norms: BlockNorms::SANDWICH,
    attention: AttentionForm {
        rope: Some(RopeForm {
            mode: RopeMode::Norm,
            sections: Sections::Mrope,
            ..Arch::CLASSIC_ROPE
        }),
        ..Arch::CLASSIC.attention
    },
    ffn: FfnForm {
        activation: Activation::GatedFused(Glu::new(GluKind::Swiglu)),
        ..Arch::CLASSIC.ffn
    },
    ..Arch::CLASSIC
};
