//! Nanbeige.

use tpc_ir::op::RopeMode;

use crate::description::{Arch, AttentionForm, LoopForm, RopeFactors, RopeForm};

pub(crate) const NANBEIGE: Arch = Arch {
    name: "nanbeige",
    loops: LoopForm::Counted,
    attention: AttentionForm {
        rope: Some(RopeForm {
            mode: RopeMode::Norm,
            factors: RopeFactors::One,
            ..Arch::CLASSIC_ROPE
        }),
        ..Arch::CLASSIC.attention
    },
    ..Arch::CLASSIC
};
