//! OpenELM.

use crate::description::{Arch, AttentionForm, HeadForm, Presence, QkNorm, QkvForm};

pub(crate) const OPENELM: Arch = Arch {
    name: "openelm",
    attention: AttentionForm {
        qkv: QkvForm::Fused,
        qk_norm: QkNorm::Head,
        ..Arch::CLASSIC.attention
    },
    head: HeadForm {
        output: Presence::Absent,
        ..Arch::CLASSIC.head
    },
    ..Arch::CLASSIC
};
