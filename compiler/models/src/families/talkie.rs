//! Talkie.

use crate::description::{
    Arch, AttentionForm, EmbeddingForm, HeadForm, LogitScale, NormForm, Presence, QkNorm,
    QkNormOrder,
};

/// `talkie`: every layer adds the normalised embedding again.
pub(crate) const TALKIE: Arch = Arch {
    name: "talkie",
    embedding: EmbeddingForm {
        plain_norm: true,
        ..Arch::CLASSIC.embedding
    },
    norm: NormForm {
        weight: Presence::Absent,
        ..Arch::CLASSIC.norm
    },
    embedding_skip: Presence::Required,
    attention: AttentionForm {
        qk_norm: QkNorm::QueriesByHead,
        qk_norm_order: QkNormOrder::RotationFirst,
        ..Arch::CLASSIC.attention
    },
    head: HeadForm {
        output: Presence::Required,
        logit_scale: LogitScale::Factor,
        ..Arch::CLASSIC.head
    },
    ..Arch::CLASSIC
};
