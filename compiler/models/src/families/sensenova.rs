//! SenseNova U1.

use crate::description::{Arch, AttentionForm, QkNorm, RopeForm, RotatedPart};

/// `sensenova_u1`: the text part. Positions in time rotate the first half of a head.
pub(crate) const SENSENOVA_U1: Arch = Arch {
    name: "sensenova_u1",
    attention: AttentionForm {
        qk_norm: QkNorm::Halves,
        rope: Some(RopeForm {
            part: RotatedPart::HalfOfHead,
            ..Arch::CLASSIC_ROPE
        }),
        ..Arch::CLASSIC.attention
    },
    ..Arch::CLASSIC
};
