//! SmallThinker.

use tpc_ir::op::{Glu, GluKind};

use crate::description::{
    Activation, Arch, AttentionForm, ExpertForm, Experts, FfnForm, Gating, KeyUse, RopeForm,
    RopeLayers, RouterInput, Window, WindowKind, WindowedRope,
};

/// `smallthinker`: the first of every four layers has full attention without rotation; the others have a fixed window.
pub(crate) const SMALLTHINKER: Arch = Arch {
    name: "smallthinker",
    attention: AttentionForm {
        rope: Some(RopeForm {
            layers: RopeLayers::AllButFirstOfEveryIfWindowed(4),
            windowed: WindowedRope::OwnBase,
            ..Arch::CLASSIC_ROPE
        }),
        window: Window::AllButFirstOfEvery(4),
        window_kind: WindowKind::SlidingBy(4096),
        ..Arch::CLASSIC.attention
    },
    ffn: FfnForm {
        activation: Activation::Gated(Glu::new(GluKind::Reglu)),
        experts: Experts::Always(ExpertForm {
            gating: Gating::Sigmoid,
            gating_key: KeyUse::Read,
            router_input: RouterInput::Layer,
            ..ExpertForm::CLASSIC
        }),
        ..Arch::CLASSIC.ffn
    },
    ..Arch::CLASSIC
};
