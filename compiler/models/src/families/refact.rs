use crate::description::{Alibi, Arch, AttentionForm, Experts, FfnForm, Models};

/// `refact`: ALiBi without a key. llama.cpp loads the experts of such files, but does not run them.
pub(crate) const REFACT: Arch = Arch {
    name: "refact",
    attention: AttentionForm {
        rope: None,
        alibi: Alibi::In(Models::All, 8.0),
        ..Arch::CLASSIC.attention
    },
    ffn: FfnForm {
        experts: Experts::Unsupported,
        ..Arch::CLASSIC.ffn
    },
    ..Arch::CLASSIC
};
