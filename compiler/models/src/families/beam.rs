//! Beam.

use tpc_ir::op::UnaryKind;

use crate::description::{
    Arch, AttentionForm, BlockNorms, ExpertForm, Experts, FfnForm, GateWidth, Gating, HeadForm,
    KeyUse, OutGate, Presence, QkNorm, ResidualSum, RopeForm, RopeLayers, TemperatureForm, Window,
    WindowedRope,
};

/// `beam`: layers with a window rotate, others scale their queries; residual sums depend on the depth.
pub(crate) const BEAM: Arch = Arch {
    name: "beam",
    norms: BlockNorms::SANDWICH,
    residual_sum: ResidualSum::ByDepth,
    attention: AttentionForm {
        qk_norm: QkNorm::Head,
        rope: Some(RopeForm {
            layers: RopeLayers::OnlyWindowed,
            windowed: WindowedRope::OwnBase,
            ..Arch::CLASSIC_ROPE
        }),
        temperature: TemperatureForm::UnrotatedPower {
            scale: 0.1,
            length: 2048,
        },
        window: Window::Listed,
        out_gate: OutGate::Projected(UnaryKind::Sigmoid, GateWidth::Elements, Presence::Required),
        gate_bias: Presence::Required,
        ..Arch::CLASSIC.attention
    },
    ffn: FfnForm {
        experts: Experts::Always(ExpertForm {
            gating: Gating::Sigmoid,
            selection_bias: Presence::Required,
            shared: None,
            ..ExpertForm::DEEPSEEK
        }),
        ..Arch::CLASSIC.ffn
    },
    head: HeadForm {
        softcap: KeyUse::Read,
        ..Arch::CLASSIC.head
    },
    ..Arch::CLASSIC
};
