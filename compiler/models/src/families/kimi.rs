//! Kimi's models with delta attention.

use crate::description::{
    Arch, AttentionForm, DecayShape, ExpertForm, ExpertWeights, Experts, FfnForm, Gating, KdaDecay,
    KdaForm, LatentForm, Presence, RecurrentForm, RecurrentLayers, RecurrentMixer, RopeForm,
    RopeLayers,
};

/// `kimi-linear`: delta attention, with latent attention that does not rotate in some layers, and experts beside shared
/// ones after dense layers.
pub(crate) const KIMI_LINEAR: Arch = Arch {
    name: "kimi-linear",
    attention: AttentionForm {
        latent: Some(LatentForm::Absorbed),
        rope: Some(RopeForm {
            layers: RopeLayers::Never,
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
        }),
        layers: RecurrentLayers::WithoutKvHeads,
    }),
    ffn: FfnForm {
        experts: Experts::Always(ExpertForm {
            gating: Gating::Sigmoid,
            selection_bias: Presence::Required,
            weights: ExpertWeights::SumToOne,
            ..ExpertForm::DEEPSEEK
        }),
        ..Arch::CLASSIC.ffn
    },
    ..Arch::CLASSIC
};
