//! Kolibri.

use crate::description::{
    Arch, AttentionForm, BlockNorms, ExpertForm, ExpertLayers, Experts, FfnForm, HeadForm, KeyUse,
    Presence, QkNorm, RopeForm, RopeLayers, SelectedBy, SharedForm, SharedWidth, Window,
};

/// `kolibri1`: layers with a window rotate, and biased logits select the experts.
pub(crate) const KOLIBRI1: Arch = Arch {
    name: "kolibri1",
    norms: BlockNorms::SANDWICH,
    attention: AttentionForm {
        qk_norm: QkNorm::Head,
        rope: Some(RopeForm {
            layers: RopeLayers::OnlyWindowed,
            ..Arch::CLASSIC_ROPE
        }),
        window: Window::Listed,
        ..Arch::CLASSIC.attention
    },
    ffn: FfnForm {
        experts: Experts::Always(ExpertForm {
            layers: ExpertLayers::All,
            selected_by: SelectedBy::Logits,
            selection_bias: Presence::Required,
            weights_scale: KeyUse::Ignored,
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
