//! DeepSeek 2 to 3.2, Kimi K2, and Mistral's models of the same design.

use tpc_ir::op::RopeMode;

use crate::description::{
    Arch, AttentionForm, DraftForm, ExpertForm, Experts, FfnForm, LatentForm, RopeForm,
    TemperatureForm, YarnFactor,
};

/// `deepseek2`: keys and values from a latent vector, dense layers first, then experts in groups beside shared ones.
pub(crate) const DEEPSEEK2: Arch = Arch {
    name: "deepseek2",
    attention: AttentionForm {
        latent: Some(LatentForm::Absorbed),
        temperature: TemperatureForm::PerLength,
        rope: Some(RopeForm {
            mode: RopeMode::Norm,
            yarn: YarnFactor::OnLogits,
            ..Arch::CLASSIC_ROPE
        }),
        ..Arch::CLASSIC.attention
    },
    ffn: FfnForm {
        experts: Experts::IfCounted(ExpertForm::DEEPSEEK),
        ..Arch::CLASSIC.ffn
    },
    drafts: Some(DraftForm::CLASSIC),
    ..Arch::CLASSIC
};

/// `mistral4`
pub(crate) const MISTRAL4: Arch = Arch {
    name: "mistral4",
    ..DEEPSEEK2
};
