//! GroveMoE.

use super::qwen::QWEN3;
use crate::description::{Arch, ExpertForm, ExpertWidth, Experts, FfnForm, KeyUse};

pub(crate) const GROVEMOE: Arch = Arch {
    name: "grovemoe",
    ffn: FfnForm {
        experts: Experts::Always(ExpertForm {
            width: ExpertWidth::GivenOrShareOfDense,
            groups: KeyUse::Read,
            ..ExpertForm::CLASSIC
        }),
        ..Arch::CLASSIC.ffn
    },
    ..QWEN3
};
