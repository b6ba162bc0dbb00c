//! Ling and Ring.

use tpc_ir::op::{RopeMode, UnaryKind};

use crate::description::{
    Arch, AttentionForm, DecayShape, DraftForm, ExpertForm, ExpertWeights, Experts, FfnForm,
    GateWidth, Gating, KdaDecay, KdaForm, KeyUse, LatentForm, OutGate, Presence, QkNorm, QkvForm,
    RecurrentForm, RecurrentLayers, RecurrentMixer, RopeFactors, RopeForm, Sections, SharedForm,
    SharedWidth, SwigluLimits,
};

pub(crate) const BAILINGMOE: Arch = Arch {
    name: "bailingmoe",
    attention: AttentionForm {
        rope: Some(RopeForm {
            mode: RopeMode::Norm,
            factors: RopeFactors::One,
            ..Arch::CLASSIC_ROPE
        }),
        ..Arch::CLASSIC.attention
    },
    ffn: FfnForm {
        experts: Experts::Always(ExpertForm {
            weights: ExpertWeights::ByKey,
            weights_scale: KeyUse::Read,
            shared: Some(SharedForm::plain(SharedWidth::Counted)),
            ..ExpertForm::CLASSIC
        }),
        ..Arch::CLASSIC.ffn
    },
    ..Arch::CLASSIC
};

pub(crate) const BAILINGMOE2: Arch = Arch {
    name: "bailingmoe2",
    attention: AttentionForm {
        qkv: QkvForm::Fused,
        qk_norm: QkNorm::Head,
        ..Arch::CLASSIC.attention
    },
    ffn: FfnForm {
        experts: Experts::Always(ExpertForm {
            gating: Gating::Sigmoid,
            ..ExpertForm::DEEPSEEK
        }),
        ..Arch::CLASSIC.ffn
    },
    drafts: Some(DraftForm {
        norms: &["nextn.shared_head_norm", "layer_output_norm"],
        ..DraftForm::CLASSIC
    }),
    ..Arch::CLASSIC
};

pub(crate) const BAILINGMOE3: Arch = Arch {
    name: "bailingmoe3",
    attention: AttentionForm {
        latent: Some(LatentForm::Absorbed),
        rope: Some(RopeForm {
            mode: RopeMode::Norm,
            sections: Sections::Mrope,
            ..Arch::CLASSIC_ROPE
        }),
        out_gate: OutGate::Projected(UnaryKind::Sigmoid, GateWidth::Heads, Presence::Required),
        ..Arch::CLASSIC.attention
    },
    recurrent: Some(RecurrentForm {
        mixer: RecurrentMixer::Kda(KdaForm {
            decay_tensors: &["ssm_f_a"],
            decay: KdaDecay::Bounded,
            decay_shape: DecayShape::Column,
            gate_tensors: &["ssm_g_a"],
            unit_eps: None,
        }),
        layers: RecurrentLayers::WithoutKvHeads,
    }),
    ffn: FfnForm {
        limits: SwigluLimits::OnActivated,
        experts: Experts::Always(ExpertForm {
            selection_bias: Presence::Required,
            shared: Some(SharedForm::plain(SharedWidth::GivenOrCounted)),
            ..ExpertForm::DEEPSEEK
        }),
        ..Arch::CLASSIC.ffn
    },
    drafts: Some(DraftForm {
        norms: &["layer_output_norm"],
        ..DraftForm::CLASSIC
    }),
    ..Arch::CLASSIC
};
