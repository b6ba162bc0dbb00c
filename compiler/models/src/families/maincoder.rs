//! Maincoder.

use tpc_ir::op::RopeMode;

use crate::description::{Arch, AttentionForm, QkNorm, QkNormOrder, RopeForm};

pub(crate) const MAINCODER: Arch = Arch {
    name: "maincoder",
    attention: AttentionForm {
        qk_norm: QkNorm::Head,
        qk_norm_order: QkNormOrder::RotationFirst,
        rope: Some(RopeForm {
            mode: RopeMode::Norm,
            ..Arch::CLASSIC_ROPE
        }),
        ..Arch::CLASSIC.attention
    },
    ..Arch::CLASSIC
};
