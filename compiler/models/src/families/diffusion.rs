//! Models that generate by diffusion: Dream, LLaDA and RND1. Tokens also attend to later tokens.

use super::llama::LLAMA;
use super::qwen::{QWEN2, QWEN3MOE};
use crate::description::{
    Arch, AttentionForm, Direction, ExpertForm, ExpertWeights, ExpertWidth, Experts, FfnForm,
    HeadForm, Presence, RopeForm,
};
use tpc_ir::op::RopeMode;

/// `dream`: same as Qwen 2.
pub(crate) const DREAM: Arch = Arch {
    name: "dream",
    attention: AttentionForm {
        direction: Direction::Bidirectional,
        qkv_bias: Presence::Optional,
        ..QWEN2.attention
    },
    head: Arch::CLASSIC.head,
    ..QWEN2
};

/// `llada`: same as Llama.
pub(crate) const LLADA: Arch = Arch {
    name: "llada",
    attention: AttentionForm {
        direction: Direction::Bidirectional,
        rope: Some(RopeForm {
            mode: RopeMode::Norm,
            ..Arch::CLASSIC_ROPE
        }),
        ..Arch::CLASSIC.attention
    },
    ffn: Arch::CLASSIC.ffn,
    ..LLAMA
};

/// `llada-moe`: norms on heads; expert weights are not normalised.
pub(crate) const LLADA_MOE: Arch = Arch {
    name: "llada-moe",
    attention: AttentionForm {
        direction: Direction::Bidirectional,
        ..QWEN3MOE.attention
    },
    ffn: FfnForm {
        experts: Experts::Always(ExpertForm {
            width: ExpertWidth::GivenOrShareOfDense,
            weights: ExpertWeights::AsGiven,
            ..ExpertForm::CLASSIC
        }),
        ..Arch::CLASSIC.ffn
    },
    head: HeadForm {
        output: Presence::Required,
        ..Arch::CLASSIC.head
    },
    ..QWEN3MOE
};

/// `rnd1`: same as Qwen 3's mixture of experts.
pub(crate) const RND1: Arch = Arch {
    name: "rnd1",
    attention: AttentionForm {
        direction: Direction::Bidirectional,
        ..QWEN3MOE.attention
    },
    ..QWEN3MOE
};
