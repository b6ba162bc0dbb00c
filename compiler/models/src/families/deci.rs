//! Llama Nemotron and DeciLM.

use super::llama::LLAMA;
use crate::description::{Arch, Experts, FfnForm, Sublayers};

/// `deci`: Llama, but some layers lack attention, have a matrix in its place, or are empty.
pub(crate) const DECI: Arch = Arch {
    name: "deci",
    sublayers: Sublayers::ByCounts,
    ffn: FfnForm {
        experts: Experts::None,
        ..LLAMA.ffn
    },
    ..LLAMA
};
