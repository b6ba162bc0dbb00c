//! Pocket TTS: the part that predicts speech from tokens and embeddings of sound.

use tpc_ir::op::{RopeMode, UnaryKind};

use crate::description::{
    Activation, Arch, AttentionForm, FfnForm, HeadForm, NormForm, Presence, RopeForm,
};

pub(crate) const POCKETTTS: Arch = Arch {
    name: "pockettts",
    norm: NormForm::LAYER,
    attention: AttentionForm {
        rope: Some(RopeForm {
            mode: RopeMode::Norm,
            ..Arch::CLASSIC_ROPE
        }),
        ..Arch::CLASSIC.attention
    },
    ffn: FfnForm {
        activation: Activation::Plain(&[UnaryKind::Gelu]),
        ..Arch::CLASSIC.ffn
    },
    head: HeadForm {
        output: Presence::Absent,
        ..Arch::CLASSIC.head
    },
    ..Arch::CLASSIC
};
