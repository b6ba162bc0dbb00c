//! Qwen 3 Next and Qwen 3.5: gated delta rules, with gated attention in some layers.

use tpc_ir::op::{RopeMode, UnaryKind};

use crate::description::{
    Arch, AttentionForm, BlockNorms, DeltaNetForm, DraftForm, EmbeddingForm, ExpertForm,
    ExpertWidth, Experts, FfnForm, GateForm, HeadForm, HyperForm, IndexerEps, IndexerForm,
    IndexerLayers, IndexerPart, IndexerTensors, KeyHeads, KeyUse, OutGate, Presence, QkNorm,
    RecurrentForm, RecurrentLayers, RecurrentMixer, Residual, RopeForm, Sections, Selection,
    SharedForm, SharedWidth,
};

/// `qwen35`: text has one position per token, but the rotation interleaves sections as for images.
pub(crate) const QWEN35: Arch = Arch {
    name: "qwen35",
    norms: BlockNorms::PRE_AS_POST,
    attention: AttentionForm {
        qk_norm: QkNorm::Head,
        rope: Some(RopeForm {
            mode: RopeMode::Neox,
            sections: Sections::Imrope,
            ..Arch::CLASSIC_ROPE
        }),
        out_gate: OutGate::WithQueries,
        ..Arch::CLASSIC.attention
    },
    recurrent: Some(RecurrentForm {
        mixer: RecurrentMixer::DeltaNet(DeltaNetForm {
            key_heads: KeyHeads::Interleaved,
            gates: GateForm::Separate,
            out_gate: UnaryKind::Silu,
        }),
        layers: RecurrentLayers::AllButEvery(4),
    }),
    drafts: Some(DraftForm::CLASSIC),
    ..Arch::CLASSIC
};

pub(crate) const QWEN35MOE: Arch = Arch {
    name: "qwen35moe",
    ffn: FfnForm {
        experts: Experts::Always(ExpertForm {
            width: ExpertWidth::GivenOrShareOfDense,
            shared: Some(SharedForm::with_gate(SharedWidth::GivenOrDense)),
            ..ExpertForm::CLASSIC
        }),
        ..Arch::CLASSIC.ffn
    },
    ..QWEN35
};

/// `qwen3next`: Qwen 3.5 with experts, another rotation and another form of gates.
pub(crate) const QWEN3NEXT: Arch = Arch {
    name: "qwen3next",
    attention: AttentionForm {
        rope: Some(Arch::CLASSIC_ROPE),
        ..QWEN35.attention
    },
    recurrent: Some(RecurrentForm {
        mixer: RecurrentMixer::DeltaNet(DeltaNetForm {
            key_heads: KeyHeads::Consecutive,
            gates: GateForm::Fused,
            out_gate: UnaryKind::Silu,
        }),
        layers: RecurrentLayers::AllButEvery(4),
    }),
    ..QWEN35MOE
};

/// `qwen4exp`: parallel residual streams, n-gram embeddings in one layer, attention to an indexer's blocks.
pub(crate) const QWEN4EXP: Arch = Arch {
    name: "qwen4exp",
    embedding: EmbeddingForm {
        ngrams: KeyUse::Read,
        ..Arch::CLASSIC.embedding
    },
    norms: BlockNorms::NONE,
    residual: Residual::Hyper(HyperForm::LowRank),
    attention: AttentionForm {
        qkv_bias: Presence::Absent,
        indexer: Some(IndexerForm {
            presence: Presence::Required,
            tensors: IndexerTensors::OfInput,
            mode: RopeMode::Neox,
            rotated: IndexerPart::First,
            layers: IndexerLayers::All,
            eps: IndexerEps::Model,
            selects: Selection::MeanBlocks,
        }),
        ..QWEN35.attention
    },
    recurrent: Some(RecurrentForm {
        mixer: RecurrentMixer::DeltaNet(DeltaNetForm {
            key_heads: KeyHeads::Interleaved,
            gates: GateForm::Separate,
            out_gate: UnaryKind::Sigmoid,
        }),
        layers: RecurrentLayers::AllButEvery(4),
    }),
    head: HeadForm {
        norm: None,
        ..Arch::CLASSIC.head
    },
    drafts: None,
    ..QWEN35MOE
};
