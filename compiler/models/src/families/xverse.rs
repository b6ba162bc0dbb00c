//! XVERSE.

use tpc_ir::op::RopeMode;

use crate::description::{Arch, AttentionForm, RopeForm};

pub(crate) const XVERSE: Arch = Arch {
    name: "xverse",
    attention: AttentionForm {
        rope: Some(RopeForm {
            mode: RopeMode::Norm,
            ..Arch::CLASSIC_ROPE
        }),
        ..Arch::CLASSIC.attention
    },
    ..Arch::CLASSIC
};
