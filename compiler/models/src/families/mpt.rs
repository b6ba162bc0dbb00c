use tpc_ir::op::{NormKind, UnaryKind};

use crate::description::{
    Activation, Alibi, Arch, AttentionForm, EmbeddingForm, FfnForm, KeyUse, NormForm, Presence,
    QkNorm, QkvForm,
};

pub(crate) const MPT: Arch = Arch {
    name: "mpt",
    embedding: EmbeddingForm {
        positions: Presence::Optional,
        ..Arch::CLASSIC.embedding
    },
    norm: NormForm {
        kind: NormKind::Layer,
        bias: Presence::Optional,
        ..Arch::CLASSIC.norm
    },
    attention: AttentionForm {
        qkv: QkvForm::Fused,
        clamp: KeyUse::Read,
        out_bias: Presence::Optional,
        qk_norm: QkNorm::OptionalAll,
        rope: None,
        alibi: Alibi::Key,
        ..Arch::CLASSIC.attention
    },
    ffn: FfnForm {
        activation: Activation::Plain(&[UnaryKind::Gelu]),
        act_scales: Presence::Optional,
        bias: Presence::Optional,
        ..Arch::CLASSIC.ffn
    },
    ..Arch::CLASSIC
};
