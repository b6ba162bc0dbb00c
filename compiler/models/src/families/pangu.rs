//! openPangu Embedded.

use crate::description::{Arch, AttentionForm, Presence};

pub(crate) const PANGU_EMBEDDED: Arch = Arch {
    name: "pangu-embedded",
    attention: AttentionForm {
        out_bias: Presence::Required,
        ..Arch::CLASSIC.attention
    },
    ..Arch::CLASSIC
};
