use tpc_ir::op::{Glu, GluKind};

use crate::description::{
    Activation, Arch, AttentionForm, BlockNorms, DenseBeside, EmbeddingForm, EmbeddingScale,
    ExpertForm, Experts, FfnForm, HeadForm, KeyUse, LogitScale, Presence, RopeForm, ScaleRule,
};

/// `grok`: factors default to Grok 1's. Only Grok 2 has a dense network parallel to the experts.
pub(crate) const GROK: Arch = Arch {
    name: "grok",
    embedding: EmbeddingForm {
        scale: EmbeddingScale::KeyOr(78.383_67),
        ..Arch::CLASSIC.embedding
    },
    norms: BlockNorms {
        post_attention: Some("attn_output_norm"),
        post_ffn: Some("layer_output_norm"),
        post_ffn_or: Some("post_ffw_norm"),
        ..BlockNorms::PRE
    },
    attention: AttentionForm {
        rope: Some(RopeForm {
            beta_fast: 8.0,
            ..Arch::CLASSIC_ROPE
        }),
        scale: ScaleRule::OutputKey(0.088_388_346),
        softcap: KeyUse::ReadOr(30.0),
        ..Arch::CLASSIC.attention
    },
    ffn: FfnForm {
        activation: Activation::Gated(Glu::new(GluKind::Geglu)),
        experts: Experts::Always(ExpertForm {
            dense: Some(DenseBeside {
                presence: Presence::Optional,
                norm: None,
                scale: std::f32::consts::FRAC_1_SQRT_2,
            }),
            ..ExpertForm::CLASSIC
        }),
        ..Arch::CLASSIC.ffn
    },
    head: HeadForm {
        logit_scale: LogitScale::FactorOr(0.577_350_3),
        softcap: KeyUse::Read,
        ..Arch::CLASSIC.head
    },
    ..Arch::CLASSIC
};
