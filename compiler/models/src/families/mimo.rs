//! MiMo V2.

use crate::description::{
    Arch, AttentionForm, DraftForm, DraftInput, ExpertForm, ExpertLayers, Experts, FfnForm, Gating,
    KeyUse, Presence, RopeForm, Window, WindowedRope,
};

pub(crate) const MIMO2: Arch = Arch {
    name: "mimo2",
    attention: AttentionForm {
        qkv_bias: Presence::Absent,
        value_scale: KeyUse::Read,
        rope: Some(RopeForm {
            windowed: WindowedRope::Local(10_000.0),
            ..Arch::CLASSIC_ROPE
        }),
        window: Window::Listed,
        sinks: Presence::Optional,
        ..Arch::CLASSIC.attention
    },
    ffn: FfnForm {
        experts: Experts::Always(ExpertForm {
            layers: ExpertLayers::WithRouter,
            gating: Gating::Sigmoid,
            selection_bias: Presence::Optional,
            ..ExpertForm::CLASSIC
        }),
        ..Arch::CLASSIC.ffn
    },
    drafts: Some(DraftForm {
        input: DraftInput::Residual,
        norms: &["nextn.shared_head_norm", "layer_output_norm"],
        ..DraftForm::CLASSIC
    }),
    ..Arch::CLASSIC
};
