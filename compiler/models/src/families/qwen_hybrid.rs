//! Qwen 3 Next and Qwen 3.5: gated delta rules, with gated attention in some layers.

use tpc_ir::op::RopeMode;

use crate::description::{
    Arch, AttentionForm, BlockNorms, DeltaNetForm, DraftForm, ExpertForm, ExpertWidth, Experts,
    FfnForm, GateForm, KeyHeads, OutGate, QkNorm, RecurrentForm, RecurrentLayers, RecurrentMixer,
    RopeForm, Sections, SharedForm, SharedWidth,
};

/// `qwen35`: norms on the heads of queries and keys. Text has one position, but its pairs are those of images.
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
            key_heads: KeyHeads::InTurns,
            gates: GateForm::Separate,
        }),
        layers: RecurrentLayers::AllButEvery(4),
    }),
    drafts: Some(DraftForm::CLASSIC),
    ..Arch::CLASSIC
};

/// `qwen35moe`: a shared expert behind a gate.
pub(crate) const QWEN35MOE: Arch = Arch {
    name: "qwen35moe",
    ffn: FfnForm {
        experts: Experts::Always(ExpertForm {
            width: ExpertWidth::GivenOrShareOfDense,
            shared: Some(SharedForm::gated(SharedWidth::GivenOrDense)),
            ..ExpertForm::CLASSIC
        }),
        ..Arch::CLASSIC.ffn
    },
    ..QWEN35
};

/// `qwen3next`: as Qwen 3.5 with experts, except for the rotation and the form of the gates.
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
        }),
        layers: RecurrentLayers::AllButEvery(4),
    }),
    ..QWEN35MOE
};
