//! Baichuan 1 and 2.

use tpc_ir::op::RopeMode;

use crate::description::{Alibi, Arch, AttentionForm, Models, RopeForm, RopeLayers};

/// `baichuan`: 32 layers (7B) rotate, 40 layers (13B) have ALiBi.
pub(crate) const BAICHUAN: Arch = Arch {
    name: "baichuan",
    attention: AttentionForm {
        rope: Some(RopeForm {
            mode: RopeMode::Norm,
            layers: RopeLayers::AllIn(Models::WithLayers(32)),
            ..Arch::CLASSIC_ROPE
        }),
        alibi: Alibi::In(Models::WithLayers(40), 8.0),
        ..Arch::CLASSIC.attention
    },
    ..Arch::CLASSIC
};
