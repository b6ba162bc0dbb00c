use tpc_ir::op::UnaryKind;

use crate::description::{
    Activation, Arch, AttentionForm, EmbeddingForm, FfnForm, HeadForm, NormForm, Presence, QkvForm,
};

/// `codeshell`: embedding and logits may share a matrix, named `output`.
pub(crate) const CODESHELL: Arch = Arch {
    name: "codeshell",
    embedding: EmbeddingForm {
        table: Presence::Optional,
        ..Arch::CLASSIC.embedding
    },
    norm: NormForm::LAYER,
    attention: AttentionForm {
        qkv: QkvForm::Fused,
        out_bias: Presence::Required,
        ..Arch::CLASSIC.attention
    },
    ffn: FfnForm {
        activation: Activation::Plain(&[UnaryKind::Gelu]),
        bias: Presence::Required,
        ..Arch::CLASSIC.ffn
    },
    head: HeadForm {
        output: Presence::Required,
        ..Arch::CLASSIC.head
    },
    ..Arch::CLASSIC
};
