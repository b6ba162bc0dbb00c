//! InternLM 2 and 3.

use tpc_ir::op::RopeMode;

use crate::description::{Arch, AttentionForm, RopeForm};

pub(crate) const INTERNLM2: Arch = Arch {
    name: "internlm2",
    attention: AttentionForm {
        rope: Some(RopeForm {
            mode: RopeMode::Norm,
            ..Arch::CLASSIC_ROPE
        }),
        ..Arch::CLASSIC.attention
    },
    ..Arch::CLASSIC
};
