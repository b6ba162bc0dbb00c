//! Hunyuan A13B.

use super::description::{
    Arch, AttentionForm, ExpertForm, Experts, FfnForm, Presence, QkNorm, QkNormOrder, SharedForm,
    SharedWidth,
};

/// `hunyuan-moe`: queries and keys are normalised after their rotation; experts beside a shared one in every layer.
pub(super) const HUNYUAN_MOE: Arch = Arch {
    name: "hunyuan-moe",
    attention: AttentionForm {
        qk_norm: QkNorm::Head,
        qk_norm_order: QkNormOrder::RotationFirst,
        ..Arch::CLASSIC.attention
    },
    ffn: FfnForm {
        experts: Experts::Always(ExpertForm {
            shared: Some(SharedForm {
                width: SharedWidth::GivenOrDense,
                gate: Presence::Absent,
            }),
            ..ExpertForm::CLASSIC
        }),
        ..Arch::CLASSIC.ffn
    },
    ..Arch::CLASSIC
};
