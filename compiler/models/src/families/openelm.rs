//! OpenELM.

use crate::description::{Arch, AttentionForm, HeadForm, Presence, QkNorm, QkvForm};

/// `openelm`: fused projections, norms on heads, tied output. Heads and widths differ between layers.
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
