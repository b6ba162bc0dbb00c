//! LFM 2, its mixture of experts, and LFM 3.

use tpc_ir::op::UnaryKind;

use crate::description::{
    Arch, AttentionForm, BlockNorms, ExpertForm, ExpertLayers, Experts, FfnForm, GateWidth, Gating,
    HeadForm, KeyUse, OutGate, Presence, QkNorm, RecurrentForm, RecurrentLayers, RecurrentMixer,
    RopeFactors, RopeForm, Window, WindowedRope,
};

pub(crate) const LFM2: Arch = Arch {
    name: "lfm2",
    attention: AttentionForm {
        qk_norm: QkNorm::Head,
        window: Window::All,
        ..Arch::CLASSIC.attention
    },
    recurrent: Some(RecurrentForm {
        mixer: RecurrentMixer::ShortConv,
        layers: RecurrentLayers::WithoutKvHeads,
    }),
    head: HeadForm {
        // Name of the output norm in LFM 2 files.
        norm: Some("token_embd_norm"),
        ..Arch::CLASSIC.head
    },
    ..Arch::CLASSIC
};

pub(crate) const LFM2MOE: Arch = Arch {
    name: "lfm2moe",
    attention: AttentionForm {
        window: Window::None,
        ..LFM2.attention
    },
    ffn: FfnForm {
        experts: Experts::Always(ExpertForm {
            layers: ExpertLayers::AfterLeading,
            gating: Gating::Sigmoid,
            gating_key: KeyUse::Read,
            selection_bias: Presence::Required,
            ..ExpertForm::CLASSIC
        }),
        ..Arch::CLASSIC.ffn
    },
    ..LFM2
};

/// `lfm3`: layers with attention have a window or divided frequencies.
pub(crate) const LFM3: Arch = Arch {
    name: "lfm3",
    norms: BlockNorms {
        post: Presence::Optional,
        ..BlockNorms::SANDWICH
    },
    attention: AttentionForm {
        rope: Some(RopeForm {
            factors: RopeFactors::Required,
            windowed: WindowedRope::Local(10_000.0),
            ..Arch::CLASSIC_ROPE
        }),
        window: Window::Listed,
        out_gate: OutGate::Projected(UnaryKind::Sigmoid, GateWidth::Heads, Presence::Required),
        ..LFM2.attention
    },
    head: Arch::CLASSIC.head,
    ..LFM2
};
