//! ERNIE 4.5, and PaddleOCR-VL, which builds on it.

use tpc_ir::op::RopeMode;

use crate::description::{
    Arch, AttentionForm, ExpertForm, ExpertLayers, Experts, FfnForm, Presence, RopeForm, Sections,
    SharedForm, SharedWidth,
};

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

/// `paddleocr`: the text part of PaddleOCR-VL, with positions in time and space.
pub(crate) const PADDLEOCR: Arch = Arch {
    name: "paddleocr",
    attention: AttentionForm {
        out_bias: Presence::Optional,
        rope: Some(RopeForm {
            sections: Sections::Mrope,
            ..Arch::CLASSIC_ROPE
        }),
        ..Arch::CLASSIC.attention
    },
    ..Arch::CLASSIC
};
