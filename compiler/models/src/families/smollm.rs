//! SmolLM 3.

use tpc_ir::op::RopeMode;

use crate::description::{Arch, AttentionForm, RopeForm, RopeLayers};

pub(crate) const SMOLLM3: Arch = Arch {
    name: "smollm3",
    attention: AttentionForm {
        rope: Some(RopeForm {
            mode: RopeMode::Norm,
            layers: RopeLayers::AllButEvery(4),
            ..Arch::CLASSIC_ROPE
        }),
        ..Arch::CLASSIC.attention
    },
    ..Arch::CLASSIC
};
