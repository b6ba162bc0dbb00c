//! gpt-oss.

use tpc_ir::op::{Glu, GluKind};

use crate::description::{
    Activation, Arch, AttentionForm, BlockNorms, ExpertForm, ExpertWeights, Experts, FfnForm,
    Gating, Presence, RopeForm, Window, WindowedRope,
};

pub(crate) const GPT_OSS: Arch = Arch {
    name: "gpt-oss",
    norms: BlockNorms::PRE_AS_POST,
    attention: AttentionForm {
        qkv_bias: Presence::Required,
        out_bias: Presence::Required,
        window: Window::AllButEvery(2),
        rope: Some(RopeForm {
            windowed: WindowedRope::OwnBase,
            ..Arch::CLASSIC_ROPE
        }),
        sinks: Presence::Required,
        ..Arch::CLASSIC.attention
    },
    ffn: FfnForm {
        activation: Activation::Gated(Glu {
            kind: GluKind::SwigluOai,
            alpha: 1.702,
            limit: 7.0,
        }),
        experts: Experts::Always(ExpertForm {
            gating: Gating::SoftmaxOfSelected,
            router_bias: Presence::Required,
            weights: ExpertWeights::AsGiven,
            bias: Presence::Required,
            ..ExpertForm::CLASSIC
        }),
        ..Arch::CLASSIC.ffn
    },
    ..Arch::CLASSIC
};
