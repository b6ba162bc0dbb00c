//! Llama Nemotron and DeciLM.

use super::llama::LLAMA;
use crate::description::{Arch, Experts, FfnForm, Sublayers};

/// `deci`: as Llama, with layers that lack attention, or have a matrix in its place, or do nothing.
pub(crate) const DECI: Arch = Arch {
    name: "deci",
    sublayers: Sublayers::ByCounts,
    ffn: FfnForm {
        experts: Experts::None,
        ..LLAMA.ffn
    },
    ..LLAMA
};
