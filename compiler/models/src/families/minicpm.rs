//! MiniCPM 1 to 3.

use super::granite::GRANITE;
use crate::description::{
    Arch, AttentionForm, EmbeddingForm, EmbeddingScale, HeadForm, LatentForm, LogitScale,
    ResidualScale, RopeFactors, RopeForm, RopeLayers,
};
use tpc_ir::op::RopeMode;

/// `minicpm`: Granite with other default multipliers.
pub(crate) const MINICPM: Arch = Arch {
    name: "minicpm",
    embedding: EmbeddingForm {
        scale: EmbeddingScale::KeyOr(12.0),
        ..GRANITE.embedding
    },
    residual_scale: ResidualScale::KeyOrOverRootOfDepth(1.4),
    attention: AttentionForm {
        rope: Some(RopeForm {
            mode: RopeMode::Norm,
            layers: RopeLayers::All,
            factors: RopeFactors::One,
            ..Arch::CLASSIC_ROPE
        }),
        ..GRANITE.attention
    },
    head: HeadForm {
        logit_scale: LogitScale::DivisorOrOverWidth(256.0),
        ..GRANITE.head
    },
    ..GRANITE
};

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
