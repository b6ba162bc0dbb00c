//! Qwen 1 to 3, their mixtures of experts, and the text parts of their vision models.

use crate::description::{
    Arch, AttentionForm, DenseWidth, ExpertForm, ExpertWeights, ExpertWidth, Experts, FfnForm,
    HeadForm, Presence, QkNorm, QkvForm, RopeForm, ScoreForm, Sections, SharedForm, SharedWidth,
};

/// `qwen`: the feed-forward width includes gate and up.
pub(crate) const QWEN: Arch = Arch {
    name: "qwen",
    attention: AttentionForm {
        qkv: QkvForm::Fused,
        qkv_bias: Presence::Required,
        ..Arch::CLASSIC.attention
    },
    ffn: FfnForm {
        width: DenseWidth::Half,
        ..Arch::CLASSIC.ffn
    },
    head: HeadForm {
        output: Presence::Required,
        ..Arch::CLASSIC.head
    },
    ..Arch::CLASSIC
};

pub(crate) const QWEN2: Arch = Arch {
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

/// `qwen2moe`: expert weights are not normalised.
pub(crate) const QWEN2MOE: Arch = Arch {
    name: "qwen2moe",
    ffn: FfnForm {
        experts: Experts::Always(ExpertForm {
            width: ExpertWidth::GivenOrShareOfDense,
            weights: ExpertWeights::AsGiven,
            shared: Some(SharedForm::with_gate(SharedWidth::GivenOrDense)),
            ..ExpertForm::CLASSIC
        }),
        ..Arch::CLASSIC.ffn
    },
    ..Arch::CLASSIC
};

pub(crate) const QWEN3: Arch = Arch {
    name: "qwen3",
    attention: AttentionForm {
        qk_norm: QkNorm::Head,
        ..Arch::CLASSIC.attention
    },
    head: HeadForm {
        scores: ScoreForm::Probabilities,
        ..Arch::CLASSIC.head
    },
    ..Arch::CLASSIC
};

pub(crate) const QWEN3MOE: Arch = Arch {
    name: "qwen3moe",
    ffn: FfnForm {
        experts: Experts::Always(ExpertForm {
            width: ExpertWidth::GivenOrShareOfDense,
            ..ExpertForm::CLASSIC
        }),
        ..Arch::CLASSIC.ffn
    },
    head: Arch::CLASSIC.head,
    ..QWEN3
};

/// `qwen2vl`: the text part of Qwen 2 and 2.5 VL, with positions in time and space.
pub(crate) const QWEN2VL: Arch = Arch {
    name: "qwen2vl",
    attention: AttentionForm {
        rope: Some(RopeForm {
            sections: Sections::Mrope,
            ..Arch::CLASSIC_ROPE
        }),
        ..QWEN2.attention
    },
    head: Arch::CLASSIC.head,
    ..QWEN2
};

const INTERLEAVED: RopeForm = RopeForm {
    sections: Sections::Imrope,
    ..Arch::CLASSIC_ROPE
};

/// `qwen3vl`: the text part of Qwen 3 VL. Its image features, added to the first layers, are not needed for text.
pub(crate) const QWEN3VL: Arch = Arch {
    name: "qwen3vl",
    attention: AttentionForm {
        rope: Some(INTERLEAVED),
        ..QWEN3.attention
    },
    ..QWEN3
};

/// `qwen3vlmoe`: the text part of Qwen 3 VL with mixtures of experts.
pub(crate) const QWEN3VLMOE: Arch = Arch {
    name: "qwen3vlmoe",
    attention: AttentionForm {
        rope: Some(INTERLEAVED),
        ..QWEN3MOE.attention
    },
    ..QWEN3MOE
};

/// `qwen3tts`: the text part of the speech model.
pub(crate) const QWEN3TTS: Arch = Arch {
    name: "qwen3tts",
    ..QWEN3VL
};
