//! DeepSeek's first mixture of experts, without latent attention.

use tpc_ir::op::RopeMode;

use crate::description::{
    Arch, AttentionForm, ExpertForm, ExpertWeights, Experts, FfnForm, KeyUse, Presence, RopeForm,
};

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
            gating_key: KeyUse::Ignored,
            selection_bias: Presence::Absent,
            weights: ExpertWeights::AsGiven,
            ..ExpertForm::DEEPSEEK
        }),
        ..Arch::CLASSIC.ffn
    },
    ..Arch::CLASSIC
};
