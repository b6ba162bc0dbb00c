//! K2 Horizon.

use crate::description::{
    Arch, AttentionForm, ExpertForm, Experts, FfnForm, GateWidth, Gating, KeyUse, NormForm,
    OutGate, Presence, QkNorm, SharedForm, SharedWidth, ValueSource,
};

/// `k2-horizon`: norms of parts of the residual stream, and experts that also compute values.
pub(crate) const K2_HORIZON: Arch = Arch {
    name: "k2-horizon",
    norm: NormForm {
        groups: KeyUse::Read,
        ..Arch::CLASSIC.norm
    },
    attention: AttentionForm {
        qkv_bias: Presence::Absent,
        qk_norm: QkNorm::OptionalHeadsInRow,
        value_source: ValueSource::RoutedBesideExperts,
        out_gate: OutGate::Softplus2(GateWidth::Elements, Presence::Optional),
        ..Arch::CLASSIC.attention
    },
    ffn: FfnForm {
        experts: Experts::IfCounted(ExpertForm {
            gating: Gating::Sigmoid,
            shared: Some(SharedForm::plain(SharedWidth::GivenIfCounted)),
            ..ExpertForm::DEEPSEEK
        }),
        ..Arch::CLASSIC.ffn
    },
    ..Arch::CLASSIC
};
