//! Baichuan 1 and 2.

use tpc_ir::op::RopeMode;

use crate::description::{Alibi, Arch, AttentionForm, Models, RopeForm, RopeLayers};

/// `baichuan`: a model of 32 layers (7B) rotates, one of 40 (13B) has ALiBi instead.
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
