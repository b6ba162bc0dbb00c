//! Llama Nemotron and DeciLM.

use super::llama::LLAMA;
use crate::description::{Arch, Experts, FfnForm, Sublayers};

/// `deci`: Llama, with some layers that lack attention, have a matrix instead, or are empty.
pub(crate) const DECI: Arch = Arch {
    name: "deci",
    sublayers: Sublayers::ByCounts,
    ffn: FfnForm {
        experts: Experts::None,
        ..LLAMA.ffn
    },
    ..LLAMA
};
