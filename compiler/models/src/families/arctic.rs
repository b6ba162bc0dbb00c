//! Snowflake Arctic.

use tpc_ir::op::RopeMode;

use crate::description::{
    Arch, AttentionForm, DenseBeside, DenseWidth, ExpertForm, ExpertInput, Experts, FfnForm,
    Presence, RopeForm,
};

pub(crate) const ARCTIC: Arch = Arch {
    name: "arctic",
    attention: AttentionForm {
        rope: Some(RopeForm {
            mode: RopeMode::Norm,
            ..Arch::CLASSIC_ROPE
        }),
        ..Arch::CLASSIC.attention
    },
    ffn: FfnForm {
        width: DenseWidth::Embedding,
        experts: Experts::Always(ExpertForm {
            input: ExpertInput::Layer("ffn_norm_exps"),
            dense: Some(DenseBeside {
                presence: Presence::Required,
                norm: None,
                scale: 1.0,
            }),
            ..ExpertForm::MIXTRAL
        }),
        ..Arch::CLASSIC.ffn
    },
    ..Arch::CLASSIC
};
