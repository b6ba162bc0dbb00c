//! StarCoder 1 and 2.

use tpc_ir::op::UnaryKind;

use super::gpt2::GPT2;
use crate::description::{Activation, Arch, AttentionForm, FfnForm, NormForm, Presence};

/// `starcoder`: GPT-2 with one KV head, including SantaCoder.
pub(crate) const STARCODER: Arch = Arch {
    name: "starcoder",
    ..GPT2
};

/// `starcoder2`: files lack the window of the published model.
pub(crate) const STARCODER2: Arch = Arch {
    name: "starcoder2",
    norm: NormForm::LAYER,
    attention: AttentionForm {
        out_bias: Presence::Optional,
        ..Arch::CLASSIC.attention
    },
    ffn: FfnForm {
        activation: Activation::Plain(&[UnaryKind::Gelu]),
        bias: Presence::Optional,
        ..Arch::CLASSIC.ffn
    },
    ..Arch::CLASSIC
};
