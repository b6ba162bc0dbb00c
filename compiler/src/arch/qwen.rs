//! Qwen 2 and 2.5, Qwen 3, and their mixtures of experts.

use super::description::{
    Arch, AttentionForm, ExpertForm, Experts, FfnForm, HeadForm, Presence, QkNorm, SharedForm,
    SharedWidth, Weights,
};

/// `qwen2`: biases on queries, keys and values.
pub(super) const QWEN2: Arch = Arch {
    name: "qwen2",
    attention: AttentionForm {
        qkv_bias: Presence::Required,
        ..Arch::CLASSIC.attention
    },
    head: HeadForm {
        bias: Presence::Optional,
        ..Arch::CLASSIC.head
    },
    ..Arch::CLASSIC
};

/// `qwen2moe`: weights that do not add up to 1, and a shared expert behind a gate.
pub(super) const QWEN2MOE: Arch = Arch {
    name: "qwen2moe",
    ffn: FfnForm {
        experts: Experts::Always(ExpertForm {
            weights: Weights::Kept,
            shared: Some(SharedForm {
                width: SharedWidth::GivenOrDense,
                gate: Presence::Required,
            }),
            ..ExpertForm::CLASSIC
        }),
        ..Arch::CLASSIC.ffn
    },
    ..Arch::CLASSIC
};

/// `qwen3`: norms on the heads of queries and keys.
pub(super) const QWEN3: Arch = Arch {
    name: "qwen3",
    attention: AttentionForm {
        qk_norm: QkNorm::Head,
        ..Arch::CLASSIC.attention
    },
    ..Arch::CLASSIC
};

/// `qwen3moe`
pub(super) const QWEN3MOE: Arch = Arch {
    name: "qwen3moe",
    ffn: FfnForm {
        experts: Experts::Always(ExpertForm::CLASSIC),
        ..Arch::CLASSIC.ffn
    },
    ..QWEN3
};
