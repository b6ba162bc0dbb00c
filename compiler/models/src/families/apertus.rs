//! Apertus.

use crate::description::{
    Activation, Arch, AttentionForm, FfnForm, HeadForm, Presence, QkNorm, RopeFactors, RopeForm,
};

/// `apertus`: xIELU without a gate.
pub(crate) const APERTUS: Arch = Arch {
    name: "apertus",
    attention: AttentionForm {
        qk_norm: QkNorm::Head,
        out_bias: Presence::Optional,
        rope: Some(RopeForm {
            factors: RopeFactors::One,
            ..Arch::CLASSIC_ROPE
        }),
        ..Arch::CLASSIC.attention
    },
    ffn: FfnForm {
        activation: Activation::Xielu,
        ..Arch::CLASSIC.ffn
    },
    head: HeadForm {
        output: Presence::Required,
        ..Arch::CLASSIC.head
    },
    ..Arch::CLASSIC
};
