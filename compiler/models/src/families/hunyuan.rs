//! Hunyuan, dense and A13B.

use crate::description::{
    Arch, AttentionForm, ExpertForm, Experts, FfnForm, QkNorm, QkNormOrder, SharedForm, SharedWidth,
};

/// `hunyuan-dense`: norms on the heads of queries and keys, after their rotation.
pub(crate) const HUNYUAN_DENSE: Arch = Arch {
    name: "hunyuan-dense",
    attention: AttentionForm {
        qk_norm: QkNorm::Head,
        qk_norm_order: QkNormOrder::RotationFirst,
        ..Arch::CLASSIC.attention
    },
    ..Arch::CLASSIC
};

/// `hunyuan-moe`: experts beside a shared one in every layer.
pub(crate) const HUNYUAN_MOE: Arch = Arch {
    name: "hunyuan-moe",
    ffn: FfnForm {
        experts: Experts::Always(ExpertForm {
            shared: Some(SharedForm::plain(SharedWidth::GivenOrDense)),
            ..ExpertForm::CLASSIC
        }),
        ..Arch::CLASSIC.ffn
    },
    ..HUNYUAN_DENSE
};
