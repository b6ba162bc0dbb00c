//! Nemotron 3 and 4, Minitron.

use tpc_ir::op::UnaryKind;

use crate::description::{
    Activation, Arch, AttentionForm, BlockNorms, DraftForm, DraftNorm, ExpertForm, ExpertWeights,
    Experts, FfnForm, Gating, KeyUse, NormForm, Presence, RecurrentForm, RecurrentLayers,
    RecurrentMixer, SharedForm, SharedWidth, Sublayers,
};

/// `nemotron`: the norm weights in files include the 1 that the model adds.
pub(crate) const NEMOTRON: Arch = Arch {
    name: "nemotron",
    norm: NormForm::LAYER,
    attention: AttentionForm {
        out_bias: Presence::Optional,
        ..Arch::CLASSIC.attention
    },
    ffn: FfnForm {
        activation: Activation::Plain(&[UnaryKind::Relu, UnaryKind::Sqr]),
        bias: Presence::Optional,
        ..Arch::CLASSIC.ffn
    },
    ..Arch::CLASSIC
};

/// `nemotron_h_moe`: every layer is attention without rotation, a selective scan, or a feed-forward network. A draft
/// block has attention and experts.
pub(crate) const NEMOTRON_H_MOE: Arch = Arch {
    name: "nemotron_h_moe",
    norm: Arch::CLASSIC.norm,
    norms: BlockNorms::PRE_AS_POST,
    sublayers: Sublayers::Either,
    attention: AttentionForm {
        rope: None,
        ..NEMOTRON.attention
    },
    recurrent: Some(RecurrentForm {
        mixer: RecurrentMixer::Mamba2,
        layers: RecurrentLayers::WithoutKvHeads,
    }),
    ffn: FfnForm {
        experts: Experts::IfCounted(ExpertForm {
            gating: Gating::Sigmoid,
            selection_bias: Presence::Optional,
            weights: ExpertWeights::ByKey,
            weights_scale: KeyUse::Read,
            shared: Some(SharedForm::plain(SharedWidth::Given)),
            ..ExpertForm::CLASSIC
        }),
        ..NEMOTRON.ffn
    },
    drafts: Some(DraftForm {
        norm: DraftNorm::Layer,
        ..DraftForm::CLASSIC
    }),
    ..NEMOTRON
};

pub(crate) const NEMOTRON_H: Arch = Arch {
    name: "nemotron_h",
    drafts: None,
    ..NEMOTRON_H_MOE
};
