//! Hierarchical reasoning models.

use tpc_ir::op::UnaryKind;

use crate::description::{
    Arch, AttentionForm, EmbeddingForm, EmbeddingScale, GateWidth, LoopForm, NormForm, OutGate,
    Presence,
};

pub(crate) const HRM_TEXT: Arch = Arch {
    name: "hrm_text",
    loops: LoopForm::Stacks,
    embedding: EmbeddingForm {
        scale: EmbeddingScale::Key,
        ..Arch::CLASSIC.embedding
    },
    norm: NormForm {
        weight: Presence::Absent,
        ..Arch::CLASSIC.norm
    },
    attention: AttentionForm {
        out_gate: OutGate::Projected(UnaryKind::Sigmoid, GateWidth::Elements, Presence::Required),
        ..Arch::CLASSIC.attention
    },
    ..Arch::CLASSIC
};
