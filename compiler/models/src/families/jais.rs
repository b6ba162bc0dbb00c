//! Jais.

use tpc_ir::op::UnaryKind;

use crate::description::{
    Activation, Alibi, Arch, AttentionForm, FfnForm, HeadForm, NormForm, Presence, QkvForm,
    ScaleRule,
};

pub(crate) const JAIS: Arch = Arch {
    name: "jais",
    norm: NormForm::LAYER,
    attention: AttentionForm {
        qkv: QkvForm::Fused,
        qkv_bias: Presence::Required,
        out_bias: Presence::Required,
        rope: None,
        alibi: Alibi::Key,
        scale: ScaleRule::HeadSquared,
        ..Arch::CLASSIC.attention
    },
    ffn: FfnForm {
        bias: Presence::Required,
        ..Arch::CLASSIC.ffn
    },
    head: HeadForm {
        output: Presence::Required,
        ..Arch::CLASSIC.head
    },
    ..Arch::CLASSIC
};

pub(crate) const JAIS2: Arch = Arch {
    name: "jais2",
    norm: NormForm::LAYER,
    attention: AttentionForm {
        out_bias: Presence::Required,
        ..Arch::CLASSIC.attention
    },
    ffn: FfnForm {
        activation: Activation::Plain(&[UnaryKind::Relu, UnaryKind::Sqr]),
        bias: Presence::Required,
        ..Arch::CLASSIC.ffn
    },
    ..Arch::CLASSIC
};
