//! GPT-NeoX, Pythia, and their relatives.

use tpc_ir::op::UnaryKind;

use crate::description::{
    Activation, Arch, AttentionForm, FfnForm, NormForm, Presence, QkvForm, Residual,
};

pub(crate) const GPTNEOX: Arch = Arch {
    name: "gptneox",
    norm: NormForm::LAYER,
    residual: Residual::ByKey,
    attention: AttentionForm {
        qkv: QkvForm::Fused,
        qkv_bias: Presence::Required,
        out_bias: Presence::Required,
        ..Arch::CLASSIC.attention
    },
    ffn: FfnForm {
        activation: Activation::Plain(&[UnaryKind::Gelu]),
        bias: Presence::Required,
        ..Arch::CLASSIC.ffn
    },
    ..Arch::CLASSIC
};
