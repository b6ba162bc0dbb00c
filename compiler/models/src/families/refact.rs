//! Refact.

use crate::description::{Alibi, Arch, AttentionForm, Models};

/// `refact`: ALiBi, without a key for it.
pub(crate) const REFACT: Arch = Arch {
    name: "refact",
    attention: AttentionForm {
        rope: None,
        alibi: Alibi::In(Models::All, 8.0),
        ..Arch::CLASSIC.attention
    },
    ..Arch::CLASSIC
};
