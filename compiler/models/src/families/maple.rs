//! Maple.

use super::qwen::QWEN3;
use crate::description::{
    Arch, AttentionForm, ExpertForm, Experts, FfnForm, HeadForm, HeadSizes, Presence, RopeForm,
    RopeLayers, SwigluLimits, Window, WindowedRope,
};

/// `maple`: only the listed layers with a window rotate.
pub(crate) const MAPLE: Arch = Arch {
    name: "maple",
    attention: AttentionForm {
        head_sizes: HeadSizes::WindowedRotation,
        rope: Some(RopeForm {
            layers: RopeLayers::OnlyWindowed,
            windowed: WindowedRope::OwnBase,
            ..Arch::CLASSIC_ROPE
        }),
        window: Window::Listed,
        ..QWEN3.attention
    },
    ffn: FfnForm {
        limits: SwigluLimits::OnGate,
        experts: Experts::Always(ExpertForm::CLASSIC),
        ..Arch::CLASSIC.ffn
    },
    head: HeadForm {
        output: Presence::Required,
        ..Arch::CLASSIC.head
    },
    ..QWEN3
};
