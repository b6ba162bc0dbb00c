//! Granite 3 and later.

use tpc_ir::op::RopeMode;

use crate::description::{
    Arch, AttentionForm, EmbeddingForm, EmbeddingScale, ExpertForm, Experts, FfnForm, HeadForm,
    LogitScale, Presence, RecurrentForm, RecurrentLayers, RecurrentMixer, ResidualScale,
    RopeFactors, RopeForm, RopeLayers, SharedForm, SharedWidth,
};

/// `granite`: multipliers on embeddings, attention, residuals and logits. Keys say which layers rotate.
pub(crate) const GRANITE: Arch = Arch {
    name: "granite",
    embedding: EmbeddingForm {
        scale: EmbeddingScale::Key,
        ..Arch::CLASSIC.embedding
    },
    residual_scale: ResidualScale::Key,
    attention: AttentionForm {
        out_bias: Presence::Optional,
        rope: Some(RopeForm {
            mode: RopeMode::Norm,
            layers: RopeLayers::Listed,
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

/// `granitemoe`: experts, beside a shared one if the file gives its width.
pub(crate) const GRANITEMOE: Arch = Arch {
    name: "granitemoe",
    ffn: FfnForm {
        experts: Experts::IfCounted(ExpertForm {
            shared: Some(SharedForm::plain(SharedWidth::Given)),
            ..ExpertForm::CLASSIC
        }),
        ..GRANITE.ffn
    },
    ..GRANITE
};

/// `granitehybrid`: selective scans, with attention in some layers, and experts if the file counts some.
pub(crate) const GRANITEHYBRID: Arch = Arch {
    name: "granitehybrid",
    recurrent: Some(RecurrentForm {
        mixer: RecurrentMixer::Mamba2,
        layers: RecurrentLayers::WithoutKvHeads,
    }),
    ..GRANITEMOE
};
