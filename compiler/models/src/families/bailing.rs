//! Ling and Ring, 1 and 2.

use tpc_ir::op::RopeMode;

use crate::description::{
    Arch, AttentionForm, DraftForm, ExpertForm, ExpertWeights, Experts, FfnForm, Gating, KeyUse,
    QkNorm, QkvForm, RopeFactors, RopeForm, SharedForm, SharedWidth,
};

/// `bailingmoe`: experts beside shared ones in every layer.
pub(crate) const BAILINGMOE: Arch = Arch {
    name: "bailingmoe",
    attention: AttentionForm {
        rope: Some(RopeForm {
            mode: RopeMode::Norm,
            factors: RopeFactors::One,
            ..Arch::CLASSIC_ROPE
        }),
        ..Arch::CLASSIC.attention
    },
    ffn: FfnForm {
        experts: Experts::Always(ExpertForm {
            weights: ExpertWeights::ByKey,
            weights_scale: KeyUse::Read,
            shared: Some(SharedForm::plain(SharedWidth::Counted)),
            ..ExpertForm::CLASSIC
        }),
        ..Arch::CLASSIC.ffn
    },
    ..Arch::CLASSIC
};

/// `bailingmoe2`: fused projections, norms on the heads of queries and keys, dense layers first, then experts in groups
/// beside shared ones, by biased sigmoids.
pub(crate) const BAILINGMOE2: Arch = Arch {
    name: "bailingmoe2",
    attention: AttentionForm {
        qkv: QkvForm::Fused,
        qk_norm: QkNorm::Head,
        ..Arch::CLASSIC.attention
    },
    ffn: FfnForm {
        experts: Experts::Always(ExpertForm {
            gating: Gating::Sigmoid,
            ..ExpertForm::DEEPSEEK
        }),
        ..Arch::CLASSIC.ffn
    },
    drafts: Some(DraftForm {
        norms: &["nextn.shared_head_norm", "layer_output_norm"],
        ..DraftForm::CLASSIC
    }),
    ..Arch::CLASSIC
};
