//! ChatGLM 2 and 3, GLM 4, GLM 4.5's mixture of experts, and GLM 5.3 Flash.

use tpc_ir::op::{Glu, GluKind, RopeMode};

use crate::description::{
    Activation, Arch, AttentionForm, BlockNorms, DecayShape, DraftForm, ExpertForm, Experts,
    FfnForm, Gating, HeadForm, HyperForm, IndexerEps, IndexerForm, IndexerLayers, IndexerPart,
    IndexerTensors, KdaDecay, KdaForm, LatentForm, Presence, QkNorm, QkvForm, RecurrentForm,
    RecurrentLayers, RecurrentMixer, Residual, RopeForm, Sections, Selection, StreamsEnd,
    SwigluLimits,
};

/// `chatglm`: includes early conversions of GLM 4 9B and Edge.
pub(crate) const CHATGLM: Arch = Arch {
    name: "chatglm",
    attention: AttentionForm {
        qkv: QkvForm::Fused,
        rope: Some(RopeForm {
            mode: RopeMode::Norm,
            ..Arch::CLASSIC_ROPE
        }),
        ..Arch::CLASSIC.attention
    },
    ffn: FfnForm {
        activation: Activation::GatedFused(Glu::new(GluKind::Swiglu)),
        ..Arch::CLASSIC.ffn
    },
    ..Arch::CLASSIC
};

/// `glm4`: vision models have positions in space.
pub(crate) const GLM4: Arch = Arch {
    name: "glm4",
    norms: BlockNorms::SANDWICH,
    attention: AttentionForm {
        rope: Some(RopeForm {
            mode: RopeMode::Norm,
            sections: Sections::Mrope,
            ..Arch::CLASSIC_ROPE
        }),
        ..Arch::CLASSIC.attention
    },
    ffn: FfnForm {
        activation: Activation::GatedFused(Glu::new(GluKind::Swiglu)),
        ..Arch::CLASSIC.ffn
    },
    ..Arch::CLASSIC
};

/// `glm4moe`: GLM 4.5 and later. Only the large model normalises heads.
pub(crate) const GLM4MOE: Arch = Arch {
    name: "glm4moe",
    norms: BlockNorms::PRE_AS_POST,
    attention: AttentionForm {
        qk_norm: QkNorm::OptionalHead,
        rope: Some(RopeForm {
            sections: Sections::Mrope,
            ..Arch::CLASSIC_ROPE
        }),
        ..Arch::CLASSIC.attention
    },
    ffn: FfnForm {
        experts: Experts::Always(ExpertForm {
            gating: Gating::Sigmoid,
            selection_bias: Presence::Required,
            ..ExpertForm::DEEPSEEK
        }),
        ..Arch::CLASSIC.ffn
    },
    drafts: Some(DraftForm::CLASSIC),
    ..Arch::CLASSIC
};

/// `glm5-next`: mixed residual streams, delta attention; in some layers latent attention to an indexer's blocks.
pub(crate) const GLM5_NEXT: Arch = Arch {
    name: "glm5-next",
    residual: Residual::Hyper(HyperForm::Mixed(StreamsEnd::Mean)),
    attention: AttentionForm {
        latent: Some(LatentForm::Absorbed),
        rope: None,
        indexer: Some(IndexerForm {
            presence: Presence::Required,
            tensors: IndexerTensors::OfLatent,
            mode: RopeMode::Neox,
            rotated: IndexerPart::None,
            layers: IndexerLayers::ListedOrAll,
            eps: IndexerEps::LayerNormKey,
            selects: Selection::WeightedBlocks,
        }),
        ..Arch::CLASSIC.attention
    },
    recurrent: Some(RecurrentForm {
        mixer: RecurrentMixer::Kda(KdaForm {
            decay_tensors: &["ssm_f_a", "ssm_f_b"],
            decay: KdaDecay::SoftplusOrBounded,
            decay_shape: DecayShape::Row,
            gate_tensors: &["ssm_g_a", "ssm_g_b"],
            unit_eps: Some(1e-6),
        }),
        layers: RecurrentLayers::WithoutKvHeads,
    }),
    ffn: FfnForm {
        limits: SwigluLimits::OnGateOfAll,
        experts: Experts::Always(ExpertForm {
            gating: Gating::Sigmoid,
            selection_bias: Presence::Required,
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
