//! Flint.

use crate::description::{
    Arch, AttentionForm, ExpertForm, Experts, FfnForm, HeadForm, Presence, QkNorm, RopeForm,
    RopeLayers, SharedForm, SharedWidth, Window,
};

/// `flint`: lists decide which layers rotate and which have a window.
pub(crate) const FLINT: Arch = Arch {
    name: "flint",
    attention: AttentionForm {
        qk_norm: QkNorm::Head,
        rope: Some(RopeForm {
            layers: RopeLayers::ListedOrAll,
            ..Arch::CLASSIC_ROPE
        }),
        window: Window::Listed,
        sinks: Presence::Required,
        ..Arch::CLASSIC.attention
    },
    ffn: FfnForm {
        experts: Experts::Always(ExpertForm {
            shared: Some(SharedForm::plain(SharedWidth::Given)),
            ..ExpertForm::DEEPSEEK
        }),
        ..Arch::CLASSIC.ffn
    },
    head: HeadForm {
        output: Presence::Required,
        ..Arch::CLASSIC.head
    },
    ..Arch::CLASSIC
};
