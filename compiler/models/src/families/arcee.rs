//! Arcee's foundation models.

use tpc_ir::op::{RopeMode, UnaryKind};

use crate::description::{Activation, Arch, AttentionForm, FfnForm, RopeFactors, RopeForm};

/// `arcee`: Llama with squared ReLU and no gate.
pub(crate) const ARCEE: Arch = Arch {
    name: "arcee",
    attention: AttentionForm {
        rope: Some(RopeForm {
            mode: RopeMode::Norm,
            factors: RopeFactors::One,
            ..Arch::CLASSIC_ROPE
        }),
        ..Arch::CLASSIC.attention
    },
    ffn: FfnForm {
        activation: Activation::Plain(&[UnaryKind::Relu, UnaryKind::Sqr]),
        ..Arch::CLASSIC.ffn
    },
    ..Arch::CLASSIC
};
