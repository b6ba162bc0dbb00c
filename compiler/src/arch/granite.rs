//! Granite 3 and later.

use tpc_ir::op::RopeMode;

use super::description::{
    Arch, AttentionForm, EmbeddingForm, EmbeddingScale, FfnForm, HeadForm, KeyUse, LogitScale,
    Presence, RopeFactors, RopeForm, RotatedLayers,
};

/// `granite`: multipliers on embeddings, attention, residuals and logits. Models trained without rotation say so.
pub(super) const GRANITE: Arch = Arch {
    name: "granite",
    embedding: EmbeddingForm {
        scale: EmbeddingScale::Key,
        ..Arch::CLASSIC.embedding
    },
    residual_scale: KeyUse::Obeyed,
    attention: AttentionForm {
        out_bias: Presence::Optional,
        rope: Some(RopeForm {
            mode: RopeMode::Norm,
            layers: RotatedLayers::AllIfFinetuned,
            factors: RopeFactors::One,
            ..Arch::CLASSIC_ROPE
        }),
        ..Arch::CLASSIC.attention
    },
    ffn: FfnForm {
        bias: Presence::Optional,
        ..Arch::CLASSIC.ffn
    },
    head: HeadForm {
        logit_scale: LogitScale::Divisor,
        ..Arch::CLASSIC.head
    },
    ..Arch::CLASSIC
};
