use tpc_ir::op::UnaryKind;

use crate::description::{
    Activation, Arch, AttentionForm, EmbeddingForm, FfnForm, NormForm, Presence, QkvForm,
};

pub(crate) const GPT2: Arch = Arch {
    name: "gpt2",
    embedding: EmbeddingForm {
        positions: Presence::Required,
        ..Arch::CLASSIC.embedding
    },
    norm: NormForm::LAYER,
    attention: AttentionForm {
        qkv: QkvForm::Fused,
        qkv_bias: Presence::Required,
        out_bias: Presence::Required,
        rope: None,
        ..Arch::CLASSIC.attention
    },
    ffn: FfnForm {
        activation: Activation::Plain(&[UnaryKind::Gelu]),
        bias: Presence::Required,
        ..Arch::CLASSIC.ffn
    },
    ..Arch::CLASSIC
};
