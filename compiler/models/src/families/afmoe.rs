//! Trinity (AFMoE).

use tpc_ir::op::UnaryKind;

use crate::description::{
    Arch, AttentionForm, BlockNorms, EmbeddingForm, EmbeddingScale, ExpertForm, Experts, FfnForm,
    GateWidth, Gating, OutGate, Presence, QkNorm, RopeForm, RopeLayers, SharedForm, SharedWidth,
    Window, WindowedRope,
};

pub(crate) const AFMOE: Arch = Arch {
    name: "afmoe",
    embedding: EmbeddingForm {
        scale: EmbeddingScale::RootOfWidth,
        ..Arch::CLASSIC.embedding
    },
    norms: BlockNorms::SANDWICH,
    attention: AttentionForm {
        qk_norm: QkNorm::Head,
        rope: Some(RopeForm {
            layers: RopeLayers::AllButEvery(4),
            windowed: WindowedRope::OwnBase,
            ..Arch::CLASSIC_ROPE
        }),
        window: Window::AllButEvery(4),
        out_gate: OutGate::Projected(UnaryKind::Sigmoid, GateWidth::Elements, Presence::Required),
        ..Arch::CLASSIC.attention
    },
    ffn: FfnForm {
        experts: Experts::Always(ExpertForm {
            gating: Gating::Sigmoid,
            selection_bias: Presence::Required,
            shared: Some(SharedForm::plain(SharedWidth::CountedAsExpert)),
            ..ExpertForm::DEEPSEEK
        }),
        ..Arch::CLASSIC.ffn
    },
    ..Arch::CLASSIC
};
