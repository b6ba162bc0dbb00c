use crate::description::{Alibi, Arch, AttentionForm, ExpertForm, Experts, FfnForm, Models};

/// `refact`: ALiBi without a key. llama.cpp 0.8.0 loads the experts of such files, which are Mixtral's, but its graph
/// reads only a dense network.
pub(crate) const REFACT: Arch = Arch {
    name: "refact",
    attention: AttentionForm {
        rope: None,
        alibi: Alibi::In(Models::All, 8.0),
        ..Arch::CLASSIC.attention
    },
    ffn: FfnForm {
        experts: Experts::IfCounted(ExpertForm::MIXTRAL),
        ..Arch::CLASSIC.ffn
    },
    ..Arch::CLASSIC
};
