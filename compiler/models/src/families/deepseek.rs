//! DeepSeek's first mixture of experts. The later ones compress keys and values, which is another architecture.

use tpc_ir::op::RopeMode;

use crate::description::{
    Arch, AttentionForm, ExpertForm, ExpertLayers, Experts, FfnForm, KeyUse, Presence, RopeForm,
    SharedForm, SharedWidth, Weights,
};

/// `deepseek`: dense layers first, then experts beside shared ones, by weights that do not add up to 1.
pub(crate) const DEEPSEEK: Arch = Arch {
    name: "deepseek",
    attention: AttentionForm {
        rope: Some(RopeForm {
            mode: RopeMode::Norm,
            ..Arch::CLASSIC_ROPE
        }),
        ..Arch::CLASSIC.attention
    },
    ffn: FfnForm {
        experts: Experts::Always(ExpertForm {
            layers: ExpertLayers::AfterLeading,
            weights: Weights::Kept,
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
