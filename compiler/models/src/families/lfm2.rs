//! LFM 2 and its mixture of experts.

use crate::description::{
    Arch, AttentionForm, ExpertForm, ExpertLayers, Experts, FfnForm, Gating, HeadForm, KeyUse,
    Presence, QkNorm, RecurrentForm, RecurrentLayers, RecurrentMixer, Window,
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
