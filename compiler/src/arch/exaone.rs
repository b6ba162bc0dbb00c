//! EXAONE 3 and 4.

use super::description::{
    Arch, AttentionForm, BlockNorms, Models, QkNorm, RopeFactors, RopeForm, RotatedLayers, Window,
};

/// `exaone`
pub(super) const EXAONE: Arch = Arch {
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

/// `exaone4`: both halves normalise their output, and heads are normalised. In the model of 64 layers (32B) three
/// layers of four have a window, and only those rotate.
pub(super) const EXAONE4: Arch = Arch {
    name: "exaone4",
    norms: BlockNorms::POST,
    attention: AttentionForm {
        qk_norm: QkNorm::Head,
        rope: Some(RopeForm {
            factors: RopeFactors::One,
            layers: RotatedLayers::Windowed,
            ..Arch::CLASSIC_ROPE
        }),
        window: Window::AllButEvery(4),
        window_in: Models::WithLayers(64),
        window_default: Some(4096),
        ..Arch::CLASSIC.attention
    },
    ..Arch::CLASSIC
};
