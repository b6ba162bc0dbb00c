//! Mellum.

use super::qwen::QWEN3MOE;
use crate::description::{Arch, AttentionForm, HeadForm, Presence, RopeForm, Window, WindowedRope};

/// `mellum`: Qwen 3's mixture of experts. Three layers of four have a window and do not scale the rotation.
pub(crate) const MELLUM: Arch = Arch {
    name: "mellum",
    attention: AttentionForm {
        rope: Some(RopeForm {
            windowed: WindowedRope::Unscaled,
            ..Arch::CLASSIC_ROPE
        }),
        window: Window::AllButEvery(4),
        ..QWEN3MOE.attention
    },
    head: HeadForm {
        output: Presence::Required,
        ..Arch::CLASSIC.head
    },
    ..QWEN3MOE
};
