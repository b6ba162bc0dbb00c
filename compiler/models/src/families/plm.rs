//! PLM.

use tpc_ir::op::{RopeMode, UnaryKind};

use crate::description::{
    Activation, Arch, AttentionForm, FfnForm, HeadForm, KeyUse, LatentForm, Presence, RopeForm,
};

/// `plm`: latent attention, squared ReLU and no gate.
pub(crate) const PLM: Arch = Arch {
    name: "plm",
    attention: AttentionForm {
        latent: Some(LatentForm::Expanded),
        latent_queries: KeyUse::Ignored,
        rope: Some(RopeForm {
            mode: RopeMode::Norm,
            ..Arch::CLASSIC_ROPE
        }),
        ..Arch::CLASSIC.attention
    },
    ffn: FfnForm {
        activation: Activation::Plain(&[UnaryKind::Relu, UnaryKind::Sqr]),
        ..Arch::CLASSIC.ffn
    },
    head: HeadForm {
        output: Presence::Absent,
        ..Arch::CLASSIC.head
    },
    ..Arch::CLASSIC
};
