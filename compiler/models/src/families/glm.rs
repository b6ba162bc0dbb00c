//! ChatGLM 2 and 3, GLM 4, and GLM 4.5's mixture of experts.

use tpc_ir::op::{Glu, GluKind, RopeMode};

use crate::description::{
    Activation, Arch, AttentionForm, BlockNorms, DraftForm, ExpertForm, Experts, FfnForm, Gating,
    Presence, QkNorm, QkvForm, RopeForm, Sections,
};

/// `chatglm`: fused projections, half of each head rotated. Also GLM 4 9B and Edge in early conversions.
pub(crate) const CHATGLM: Arch = Arch {
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

/// `glm4`: norms on input and output of both sublayers. Tokens of vision models have positions in space.
pub(crate) const GLM4: Arch = Arch {
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

/// `glm4moe`: GLM 4.5 and later. Dense layers first, then experts beside shared ones, by biased sigmoids. Only the
/// large model normalises heads.
pub(crate) const GLM4MOE: Arch = Arch {
    name: "glm4moe",
    norms: BlockNorms::PRE_AS_POST,
    attention: AttentionForm {
        qk_norm: QkNorm::OptionalHead,
        rope: Some(RopeForm {
            sections: Sections::Mrope,
            ..Arch::CLASSIC_ROPE
        }),
        ..Arch::CLASSIC.attention
    },
    ffn: FfnForm {
        experts: Experts::Always(ExpertForm {
            gating: Gating::Sigmoid,
            selection_bias: Presence::Required,
            ..ExpertForm::DEEPSEEK
        }),
        ..Arch::CLASSIC.ffn
    },
    drafts: Some(DraftForm::CLASSIC),
    ..Arch::CLASSIC
};
