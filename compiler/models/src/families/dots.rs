//! dots.llm1.

use crate::description::{
    Arch, AttentionForm, ExpertForm, ExpertLayers, Experts, FfnForm, KeyUse, Presence, QkNorm,
    SharedForm, SharedWidth, Weights,
};

/// `dots1`: norms on the heads of queries and keys, dense layers first, then experts beside shared ones, by biased
/// sigmoids where the file says so.
pub(crate) const DOTS1: Arch = Arch {
    name: "dots1",
    attention: AttentionForm {
        qk_norm: QkNorm::Head,
        ..Arch::CLASSIC.attention
    },
    ffn: FfnForm {
        experts: Experts::Always(ExpertForm {
            layers: ExpertLayers::AfterLeading,
            gating_key: KeyUse::Obeyed,
            selection_bias: Presence::Optional,
            weights: Weights::Keyed,
            weights_scale: KeyUse::Obeyed,
            shared: Some(SharedForm {
                width: SharedWidth::Counted,
                gate: Presence::Absent,
            }),
            ..ExpertForm::CLASSIC
        }),
        ..Arch::CLASSIC.ffn
    },
    ..Arch::CLASSIC
};
