//! ERNIE 4.5.

use tpc_ir::op::RopeMode;

use crate::description::{
    Arch, AttentionForm, ExpertForm, ExpertLayers, Experts, FfnForm, Presence, RopeForm,
    SharedForm, SharedWidth,
};

/// `ernie4_5`
pub(crate) const ERNIE4_5: Arch = Arch {
    name: "ernie4_5",
    attention: AttentionForm {
        rope: Some(RopeForm {
            mode: RopeMode::Norm,
            ..Arch::CLASSIC_ROPE
        }),
        ..Arch::CLASSIC.attention
    },
    ..Arch::CLASSIC
};

/// `ernie4_5-moe`: dense layers first and between layers with experts, which a biased softmax selects.
pub(crate) const ERNIE4_5_MOE: Arch = Arch {
    name: "ernie4_5-moe",
    ffn: FfnForm {
        experts: Experts::Always(ExpertForm {
            layers: ExpertLayers::Interleaved,
            selection_bias: Presence::Optional,
            shared: Some(SharedForm::plain(SharedWidth::Given)),
            ..ExpertForm::CLASSIC
        }),
        ..Arch::CLASSIC.ffn
    },
    ..ERNIE4_5
};
