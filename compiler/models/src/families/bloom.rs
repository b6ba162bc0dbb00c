use tpc_ir::op::UnaryKind;

use crate::description::{
    Activation, Alibi, Arch, AttentionForm, EmbeddingForm, FfnForm, Models, NormForm, Presence,
    QkvForm,
};

pub(crate) const BLOOM: Arch = Arch {
    name: "bloom",
    embedding: EmbeddingForm {
        norm: Presence::Required,
        ..Arch::CLASSIC.embedding
    },
    norm: NormForm::LAYER,
    attention: AttentionForm {
        qkv: QkvForm::Fused,
        qkv_bias: Presence::Required,
        out_bias: Presence::Required,
        rope: None,
        alibi: Alibi::In(Models::All, 8.0),
        ..Arch::CLASSIC.attention
    },
    ffn: FfnForm {
        activation: Activation::Plain(&[UnaryKind::Gelu]),
        bias: Presence::Required,
        ..Arch::CLASSIC.ffn
    },
    ..Arch::CLASSIC
};
