//! Llama 4.

use tpc_ir::op::RopeMode;

use crate::description::{
    Arch, AttentionForm, ExpertForm, ExpertLayers, ExpertWeights, Experts, FfnForm, Gating, QkNorm,
    QkNormOrder, RopeFactors, RopeForm, RopeLayers, SharedForm, SharedWidth, TemperatureForm,
    WeightedSide, Window, WindowKind, WindowedRope,
};

/// Tokens per chunk. Files do not have a key for it.
const CHUNK: u64 = 8192;

/// `llama4`: every fourth layer has full attention without rotation; the other layers attend within chunks. Only
/// Maverick (128 experts) does not normalise queries and keys.
pub(crate) const LLAMA4: Arch = Arch {
    name: "llama4",
    attention: AttentionForm {
        qk_norm: QkNorm::UnweightedUnlessExperts(128),
        qk_norm_order: QkNormOrder::RotationFirst,
        rope: Some(RopeForm {
            mode: RopeMode::Norm,
            factors: RopeFactors::One,
            layers: RopeLayers::AllButEveryIfWindowed(4),
            windowed: WindowedRope::OwnBase,
            ..Arch::CLASSIC_ROPE
        }),
        temperature: TemperatureForm::Unrotated {
            length: CHUNK,
            scale: 0.1,
        },
        window: Window::AllButEvery(4),
        window_kind: WindowKind::Chunks(CHUNK),
        ..Arch::CLASSIC.attention
    },
    ffn: FfnForm {
        experts: Experts::Always(ExpertForm {
            layers: ExpertLayers::InterleavedUnless0,
            gating: Gating::Sigmoid,
            weights: ExpertWeights::AsGiven,
            weighted: WeightedSide::Inputs,
            shared: Some(SharedForm::plain(SharedWidth::AsExpert)),
            ..ExpertForm::CLASSIC
        }),
        ..Arch::CLASSIC.ffn
    },
    ..Arch::CLASSIC
};
