//! MiniCPM 3.

use crate::description::{
    Arch, AttentionForm, EmbeddingForm, EmbeddingScale, HeadForm, LatentForm, LogitScale,
    ResidualScale, RopeFactors, RopeForm,
};

/// `minicpm3`: keys and values from a latent vector, cached by heads, and multipliers that no key holds.
pub(crate) const MINICPM3: Arch = Arch {
    name: "minicpm3",
    embedding: EmbeddingForm {
        scale: EmbeddingScale::Fixed(12.0),
        ..Arch::CLASSIC.embedding
    },
    residual_scale: ResidualScale::OverRootOfDepth(1.4),
    attention: AttentionForm {
        latent: Some(LatentForm::Expanded),
        rope: Some(RopeForm {
            factors: RopeFactors::ByContext,
            ..Arch::CLASSIC_ROPE
        }),
        ..Arch::CLASSIC.attention
    },
    head: HeadForm {
        logit_scale: LogitScale::OverWidth(256.0),
        ..Arch::CLASSIC.head
    },
    ..Arch::CLASSIC
};
