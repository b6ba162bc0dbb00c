//! MiniMax 1, M2 and M3.

use tpc_ir::op::{Glu, GluKind, RopeMode};

use crate::description::{
    Activation, Arch, AttentionForm, ExpertForm, Experts, FfnForm, Gating, HeadForm, IndexerEps,
    IndexerForm, IndexerLayers, IndexerPart, IndexerTensors, KeyUse, Presence, QkNorm,
    RecurrentForm, RecurrentLayers, RecurrentMixer, Residual, ResidualScale, Selection, SharedForm,
    SharedWidth,
};

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
            ..ExpertForm::MIXTRAL
        }),
        ..Arch::CLASSIC.ffn
    },
    ..Arch::CLASSIC
};

/// `minimax-01`: lightning attention, softmax attention in some layers. Sublayers are added to their normalised inputs.
pub(crate) const MINIMAX_01: Arch = Arch {
    name: "minimax-01",
    residual: Residual::FromNorms,
    residual_scale: ResidualScale::Key,
    recurrent: Some(RecurrentForm {
        mixer: RecurrentMixer::Lightning,
        layers: RecurrentLayers::AllButEvery(8),
    }),
    ffn: FfnForm {
        experts: Experts::Always(ExpertForm::MIXTRAL),
        ..Arch::CLASSIC.ffn
    },
    ..Arch::CLASSIC
};

/// `minimax-m3`: norms on heads, routed and shared experts. An indexer selects blocks of tokens for every KV head.
pub(crate) const MINIMAX_M3: Arch = Arch {
    name: "minimax-m3",
    attention: AttentionForm {
        qk_norm: QkNorm::Head,
        indexer: Some(IndexerForm {
            presence: Presence::Required,
            tensors: IndexerTensors::OfInput,
            mode: RopeMode::Neox,
            rotated: IndexerPart::First,
            layers: IndexerLayers::AfterLeading,
            eps: IndexerEps::Model,
            selects: Selection::BlocksPerHead,
        }),
        ..Arch::CLASSIC.attention
    },
    ffn: FfnForm {
        activation: Activation::Gated(Glu {
            kind: GluKind::SwigluOai,
            alpha: 1.702,
            limit: 7.0,
        }),
        experts: Experts::Always(ExpertForm {
            selection_bias: Presence::Required,
            shared: Some(SharedForm::plain(SharedWidth::CountedAsExpert)),
            ..ExpertForm::DEEPSEEK
        }),
        ..Arch::CLASSIC.ffn
    },
    head: HeadForm {
        output: Presence::Required,
        ..Arch::CLASSIC.head
    },
    ..Arch::CLASSIC
};
