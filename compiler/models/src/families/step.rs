//! Step 3.5.

use tpc_ir::op::UnaryKind;

use crate::description::{
    Arch, AttentionForm, DraftForm, DraftInput, ExpertForm, ExpertLayers, Experts, FfnForm,
    GateWidth, Gating, HeadForm, HeadSizes, OutGate, Presence, QkNorm, RopeFactors, RopeForm,
    RotatedPart, SharedForm, SharedWidth, SwigluLimits, Window, WindowedRope,
};

/// `step35`: layers with full attention rotate half as many elements.
pub(crate) const STEP35: Arch = Arch {
    name: "step35",
    attention: AttentionForm {
        head_sizes: HeadSizes::WindowedRotation,
        qk_norm: QkNorm::OptionalHead,
        rope: Some(RopeForm {
            part: RotatedPart::HalfIfFull,
            factors: RopeFactors::One,
            windowed: WindowedRope::Local(10_000.0),
            ..Arch::CLASSIC_ROPE
        }),
        window: Window::Listed,
        out_gate: OutGate::Projected(UnaryKind::Sigmoid, GateWidth::Heads, Presence::Optional),
        ..Arch::CLASSIC.attention
    },
    ffn: FfnForm {
        limits: SwigluLimits::OnActivated,
        experts: Experts::Always(ExpertForm {
            layers: ExpertLayers::WithRouter,
            gating: Gating::Sigmoid,
            shared: Some(SharedForm::plain(SharedWidth::Given)),
            ..ExpertForm::DEEPSEEK
        }),
        ..Arch::CLASSIC.ffn
    },
    head: HeadForm {
        output: Presence::Required,
        ..Arch::CLASSIC.head
    },
    drafts: Some(DraftForm {
        input: DraftInput::Residual,
        ..DraftForm::CLASSIC
    }),
    ..Arch::CLASSIC
};
