//! MiniMax 1 and M2.

use crate::description::{
    Arch, AttentionForm, ExpertForm, Experts, FfnForm, Gating, KeyUse, Presence, QkNorm,
    RecurrentForm, RecurrentLayers, RecurrentMixer, Residual, ResidualScale,
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

/// `minimax-01`: lightning attention, with softmax attention in some layers. Sublayers are added to their normalised
/// inputs.
pub(crate) const MINIMAX_01: Arch = Arch {
    name: "minimax-01",
    residual: Residual::FromNorms,
    residual_scale: ResidualScale::Key,
    recurrent: Some(RecurrentForm {
        mixer: RecurrentMixer::Lightning,
        layers: RecurrentLayers::AllButEvery(8),
    }),
    ffn: FfnForm {
        experts: Experts::Always(ExpertForm::CLASSIC),
        ..Arch::CLASSIC.ffn
    },
    ..Arch::CLASSIC
};
