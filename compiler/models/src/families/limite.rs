//! Limite.

use tpc_ir::op::{RopeMode, UnaryKind};

use crate::description::{
    Arch, AttentionForm, EmbeddingForm, GateWidth, HeadForm, KeyUse, NormForm, OutGate, Presence,
    QkNorm, ResidualSum, RopeForm, RopeLayers, Window,
};

/// `limite`: norms without weights, values of tokens, and layers that mix the inputs of earlier layers.
pub(crate) const LIMITE: Arch = Arch {
    name: "limite",
    embedding: EmbeddingForm {
        plain_norm: true,
        ..Arch::CLASSIC.embedding
    },
    norm: NormForm {
        weight: Presence::Absent,
        ..Arch::CLASSIC.norm
    },
    residual_sum: ResidualSum::Kept,
    taps: KeyUse::Read,
    attention: AttentionForm {
        qk_norm: QkNorm::Unweighted,
        rope: Some(RopeForm {
            mode: RopeMode::Norm,
            layers: RopeLayers::OnlyWindowed,
            ..Arch::CLASSIC_ROPE
        }),
        window: Window::AllButEvery(4),
        token_values: Presence::Required,
        own_value: Presence::Optional,
        out_gate: OutGate::Projected(UnaryKind::Sigmoid, GateWidth::Heads, Presence::Optional),
        ..Arch::CLASSIC.attention
    },
    head: HeadForm {
        sigmoid: KeyUse::Read,
        ..Arch::CLASSIC.head
    },
    ..Arch::CLASSIC
};
