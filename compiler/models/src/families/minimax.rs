//! MiniMax M2.

use crate::description::{
    Arch, AttentionForm, ExpertForm, Experts, FfnForm, Gating, KeyUse, Presence, QkNorm,
};

/// `minimax-m2`: norms of queries and keys over all heads, experts by biased sigmoids.
pub(crate) const MINIMAX_M2: Arch = Arch {
    name: "minimax-m2",
    attention: AttentionForm {
        qk_norm: QkNorm::All,
        ..Arch::CLASSIC.attention
    },
    ffn: FfnForm {
        experts: Experts::Always(ExpertForm {
            gating: Gating::Sigmoid,
            gating_key: KeyUse::Read,
            selection_bias: Presence::Required,
            ..ExpertForm::CLASSIC
        }),
        ..Arch::CLASSIC.ffn
    },
    ..Arch::CLASSIC
};
