//! dots.llm1.

use crate::description::{Arch, AttentionForm, ExpertForm, Experts, FfnForm, QkNorm};

/// `dots1`: norms on the heads of queries and keys, dense layers first, then experts beside shared ones, by biased
/// sigmoids if a key says so.
pub(crate) const DOTS1: Arch = Arch {
    name: "dots1",
    attention: AttentionForm {
        qk_norm: QkNorm::Head,
        ..Arch::CLASSIC.attention
    },
    ffn: FfnForm {
        experts: Experts::Always(ExpertForm::DEEPSEEK),
        ..Arch::CLASSIC.ffn
    },
    ..Arch::CLASSIC
};
