//! Spark 2.5.

use tpc_ir::op::{Glu, GluKind, UnaryKind};

use crate::description::{
    Activation, Arch, AttentionForm, FfnForm, GateWidth, HeadSizes, OutGate, Presence, RopeForm,
    Window, WindowedRope,
};

pub(crate) const SPARK2_5: Arch = Arch {
    name: "spark2_5",
    attention: AttentionForm {
        head_sizes: HeadSizes::WindowedRotation,
        rope: Some(RopeForm {
            windowed: WindowedRope::OwnBase,
            ..Arch::CLASSIC_ROPE
        }),
        window: Window::Listed,
        out_gate: OutGate::Projected(UnaryKind::Sigmoid, GateWidth::Heads, Presence::Required),
        ..Arch::CLASSIC.attention
    },
    ffn: FfnForm {
        activation: Activation::Gated(Glu::new(GluKind::Geglu)),
        ..Arch::CLASSIC.ffn
    },
    ..Arch::CLASSIC
};
