//! OLMo, and OLMoE.

use tpc_ir::op::{NormKind, RopeMode};

use crate::description::{
    Arch, AttentionForm, BlockNorms, ExpertForm, ExpertWeights, Experts, FfnForm, KeyUse, NormForm,
    Presence, QkNorm, RopeForm, Window, WindowedRope,
};

pub(crate) const OLMO: Arch = Arch {
    name: "olmo",
    norm: NormForm {
        kind: NormKind::Layer,
        weight: Presence::Absent,
        ..Arch::CLASSIC.norm
    },
    attention: AttentionForm {
        clamp: KeyUse::Read,
        rope: Some(RopeForm {
            mode: RopeMode::Norm,
            ..Arch::CLASSIC_ROPE
        }),
        ..Arch::CLASSIC.attention
    },
    ..Arch::CLASSIC
};

/// `olmo2`: OLMo 3 has a window in three layers of four, which do not scale the rotation.
pub(crate) const OLMO2: Arch = Arch {
    name: "olmo2",
    norms: BlockNorms::POST,
    attention: AttentionForm {
        qk_norm: QkNorm::All,
        rope: Some(RopeForm {
            windowed: WindowedRope::Unscaled,
            ..Arch::CLASSIC_ROPE
        }),
        window: Window::AllButEvery(4),
        ..Arch::CLASSIC.attention
    },
    ..Arch::CLASSIC
};

pub(crate) const OLMOE: Arch = Arch {
    name: "olmoe",
    attention: AttentionForm {
        qk_norm: QkNorm::All,
        ..Arch::CLASSIC.attention
    },
    ffn: FfnForm {
        experts: Experts::Always(ExpertForm {
            weights: ExpertWeights::AsGiven,
            ..ExpertForm::MIXTRAL
        }),
        ..Arch::CLASSIC.ffn
    },
    ..Arch::CLASSIC
};
