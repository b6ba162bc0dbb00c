//! Ling and Ring 2.

use super::description::{
    Arch, AttentionForm, ExpertForm, ExpertLayers, Experts, FfnForm, Gating, KeyUse, Presence,
    QkNorm, QkvForm, SharedForm, SharedWidth, Weights,
};

/// `bailingmoe2`: fused projections, norms on the heads of queries and keys, dense layers first, then experts in groups
/// beside shared ones, by biased sigmoids.
pub(super) const BAILINGMOE2: Arch = Arch {
    name: "bailingmoe2",
    attention: AttentionForm {
        qkv: QkvForm::Fused,
        qk_norm: QkNorm::Head,
        ..Arch::CLASSIC.attention
    },
    ffn: FfnForm {
        experts: Experts::Always(ExpertForm {
            layers: ExpertLayers::AfterLeading,
            gating: Gating::Sigmoid,
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
