//! Nemotron 3 and 4, Minitron.

use tpc_ir::op::{NormKind, UnaryKind};

use super::description::{Activation, Arch, AttentionForm, FfnForm, NormForm, Presence};

/// `nemotron`: layer norms, squared ReLU without a gate. Norm weights in files already include the 1 that the model
/// adds.
pub(super) const NEMOTRON: Arch = Arch {
    name: "nemotron",
    norm: NormForm {
        kind: NormKind::Layer,
        bias: Presence::Required,
    },
    attention: AttentionForm {
        out_bias: Presence::Optional,
        ..Arch::CLASSIC.attention
    },
    ffn: FfnForm {
        activation: Activation::Plain(&[UnaryKind::Relu, UnaryKind::Sqr]),
        bias: Presence::Optional,
        ..Arch::CLASSIC.ffn
    },
    ..Arch::CLASSIC
};
