//! Llama 1 to 3, Mistral, Mixtral (the same architecture, with experts), and later Mistrals.

use tpc_ir::op::RopeMode;

use crate::description::{
    Arch, AttentionForm, ExpertForm, Experts, FfnForm, Presence, RopeFactors, RopeForm,
    TemperatureForm,
};

pub(crate) const LLAMA: Arch = Arch {
    name: "llama",
    attention: AttentionForm {
        out_bias: Presence::Optional,
        rope: Some(RopeForm {
            mode: RopeMode::Norm,
            factors: RopeFactors::One,
            ..Arch::CLASSIC_ROPE
        }),
        ..Arch::CLASSIC.attention
    },
    ffn: FfnForm {
        bias: Presence::Optional,
        experts: Experts::IfCounted(ExpertForm::MIXTRAL),
        ..Arch::CLASSIC.ffn
    },
    ..Arch::CLASSIC
};

/// `mistral3`: Llama with a factor on queries that grows beyond the training context.
pub(crate) const MISTRAL3: Arch = Arch {
    name: "mistral3",
    attention: AttentionForm {
        temperature: TemperatureForm::PerContext,
        ..LLAMA.attention
    },
    ..LLAMA
};
