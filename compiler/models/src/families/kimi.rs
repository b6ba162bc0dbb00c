//! Kimi's models with delta attention.

use tpc_ir::op::UnaryKind;

use crate::description::{
    Activation, Arch, AttentionForm, DecayShape, ExpertForm, ExpertLatent, ExpertWeights, Experts,
    FfnForm, GateWidth, Gating, KdaDecay, KdaForm, LatentForm, OutGate, Presence, RecurrentForm,
    RecurrentLayers, RecurrentMixer, Residual, RopeForm, RopeLayers, SharedForm, SharedWidth,
};

pub(crate) const KIMI_LINEAR: Arch = Arch {
    name: "kimi-linear",
    attention: AttentionForm {
        latent: Some(LatentForm::Absorbed),
        rope: Some(RopeForm {
            layers: RopeLayers::None,
            ..Arch::CLASSIC_ROPE
        }),
        ..Arch::CLASSIC.attention
    },
    recurrent: Some(RecurrentForm {
        mixer: RecurrentMixer::Kda(KdaForm {
            decay_tensors: &["ssm_f_a", "ssm_f_b"],
            decay: KdaDecay::Softplus,
            decay_shape: DecayShape::Column,
            gate_tensors: &["ssm_g_a", "ssm_g_b"],
            unit_eps: None,
        }),
        layers: RecurrentLayers::WithoutKvHeads,
    }),
    ffn: FfnForm {
        experts: Experts::Always(ExpertForm {
            gating: Gating::Sigmoid,
            selection_bias: Presence::Required,
            weights: ExpertWeights::SumToOne,
            shared: Some(SharedForm::plain(SharedWidth::CountedFromOne)),
            ..ExpertForm::DEEPSEEK
        }),
        ..Arch::CLASSIC.ffn
    },
    ..Arch::CLASSIC
};

/// `kimi-k3`: gated latent attention, experts that read a latent vector, and residual streams that attend to earlier
/// streams.
pub(crate) const KIMI_K3: Arch = Arch {
    name: "kimi-k3",
    residual: Residual::AttentionResiduals,
    attention: AttentionForm {
        out_gate: OutGate::Projected(UnaryKind::Sigmoid, GateWidth::Elements, Presence::Optional),
        ..KIMI_LINEAR.attention
    },
    recurrent: Some(RecurrentForm {
        mixer: RecurrentMixer::Kda(KdaForm {
            decay_tensors: &["ssm_f_a", "ssm_f_b"],
            decay: KdaDecay::SoftplusOrBounded,
            decay_shape: DecayShape::Row,
            gate_tensors: &["ssm_g"],
            unit_eps: None,
        }),
        layers: RecurrentLayers::WithoutKvHeads,
    }),
    ffn: FfnForm {
        activation: Activation::Situ,
        experts: Experts::Always(ExpertForm {
            selection_bias: Presence::Required,
            latent: Some(ExpertLatent {
                length: "expert_latent_length",
                required: false,
                down: "ffn_routed_down",
                norm: None,
                each_norm: None,
                sum_norm: Some("ffn_routed_norm"),
                up: "ffn_routed_up",
            }),
            shared: Some(SharedForm::plain(SharedWidth::CountedFromOne)),
            ..ExpertForm::DEEPSEEK
        }),
        ..Arch::CLASSIC.ffn
    },
    ..Arch::CLASSIC
};
