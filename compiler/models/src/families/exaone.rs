//! EXAONE 3 and 4, and K-EXAONE.

use crate::description::{
    Arch, AttentionForm, BlockNorms, ExpertForm, Experts, FfnForm, Gating, HeadForm, Models,
    Presence, QkNorm, RopeFactors, RopeForm, RopeLayers, SharedForm, SharedWidth, Window,
};

pub(crate) const EXAONE: Arch = Arch {
    name: "exaone",
    attention: AttentionForm {
        rope: Some(RopeForm {
            factors: RopeFactors::One,
            ..Arch::CLASSIC_ROPE
        }),
        ..Arch::CLASSIC.attention
    },
    ..Arch::CLASSIC
};

/// `exaone4`: with 64 layers (32B) three layers of four have a window; only layers with a window rotate.
pub(crate) const EXAONE4: Arch = Arch {
    name: "exaone4",
    norms: BlockNorms::POST,
    attention: AttentionForm {
        qk_norm: QkNorm::Head,
        rope: Some(RopeForm {
            factors: RopeFactors::One,
            layers: RopeLayers::Windowed,
            ..Arch::CLASSIC_ROPE
        }),
        window: Window::AllButEvery(4),
        window_in: Models::WithLayers(64),
        window_default: Some(4096),
        ..Arch::CLASSIC.attention
    },
    ..Arch::CLASSIC
};

/// `exaone-moe`: K-EXAONE.
pub(crate) const EXAONE_MOE: Arch = Arch {
    name: "exaone-moe",
    attention: AttentionForm {
        window_in: Models::All,
        window_default: Some(128),
        ..EXAONE4.attention
    },
    ffn: FfnForm {
        experts: Experts::Always(ExpertForm {
            gating: Gating::Sigmoid,
            shared: Some(SharedForm::plain(SharedWidth::GivenOrExpert)),
            ..ExpertForm::DEEPSEEK
        }),
        ..Arch::CLASSIC.ffn
    },
    head: HeadForm {
        output: Presence::Required,
        ..Arch::CLASSIC.head
    },
    ..Arch::CLASSIC
};
