//! Laguna.

use tpc_ir::op::UnaryKind;

use crate::description::{
    Arch, AttentionForm, ExpertForm, Experts, FfnForm, GateWidth, Gating, HeadSizes, OutGate,
    Presence, QkNorm, RopeForm, SharedForm, SharedWidth, Window, WindowedRope,
};

pub(crate) const LAGUNA: Arch = Arch {
    name: "laguna",
    attention: AttentionForm {
        head_sizes: HeadSizes::WindowedRotation,
        qk_norm: QkNorm::Head,
        rope: Some(RopeForm {
            windowed: WindowedRope::UnscaledOwnBase,
            ..Arch::CLASSIC_ROPE
        }),
        window: Window::AllButFirstOfEvery(4),
        out_gate: OutGate::Projected(
            UnaryKind::Softplus,
            GateWidth::HeadsOrElements,
            Presence::Required,
        ),
        ..Arch::CLASSIC.attention
    },
    ffn: FfnForm {
        experts: Experts::Always(ExpertForm {
            gating: Gating::Sigmoid,
            selection_bias: Presence::Required,
            shared: Some(SharedForm::plain(SharedWidth::GivenOrCounted)),
            ..ExpertForm::DEEPSEEK
        }),
        ..Arch::CLASSIC.ffn
    },
    ..Arch::CLASSIC
};
