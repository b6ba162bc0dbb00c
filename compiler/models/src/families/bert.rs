//! BERT and its relatives, which normalise the sums of sublayers' inputs and outputs.

use tpc_ir::op::{Glu, GluKind, UnaryKind};

use crate::description::{
    Activation, Alibi, Arch, AttentionForm, BlockNorms, Direction, EmbeddingForm, ExpertForm,
    ExpertLayers, ExpertWeights, Experts, FfnForm, HeadForm, ModelResult, Models, NormForm,
    Presence, QkNorm, Residual,
};

pub(crate) const BERT: Arch = Arch {
    name: "bert",
    embedding: EmbeddingForm {
        norm: Presence::Required,
        positions: Presence::Required,
        ..NOMIC_BERT.embedding
    },
    attention: AttentionForm {
        rope: None,
        ..NOMIC_BERT.attention
    },
    ffn: FfnForm {
        activation: Activation::Plain(&[UnaryKind::Gelu]),
        bias: Presence::Optional,
        ..Arch::CLASSIC.ffn
    },
    ..NOMIC_BERT
};

/// `nomic-bert`: rotates instead of learned positions; SwiGLU. Biases of the network are ignored.
pub(crate) const NOMIC_BERT: Arch = Arch {
    name: "nomic-bert",
    embedding: EmbeddingForm {
        norm: Presence::Required,
        types: Presence::Optional,
        ..Arch::CLASSIC.embedding
    },
    norm: NormForm::LAYER,
    norms: BlockNorms {
        post_attention: Some("attn_output_norm"),
        post_ffn: Some("layer_output_norm"),
        ..BlockNorms::NONE
    },
    residual: Residual::Normalised,
    attention: AttentionForm {
        direction: Direction::BidirectionalByKey,
        out_bias: Presence::Optional,
        ..Arch::CLASSIC.attention
    },
    head: HeadForm {
        result: ModelResult::Hidden,
        norm: None,
        ..Arch::CLASSIC.head
    },
    ..Arch::CLASSIC
};

/// `nomic-bert-moe`: experts in the second of every few layers.
pub(crate) const NOMIC_BERT_MOE: Arch = Arch {
    name: "nomic-bert-moe",
    ffn: FfnForm {
        experts: Experts::IfCounted(ExpertForm {
            layers: ExpertLayers::SecondOfEvery,
            weights: ExpertWeights::AsGiven,
            ..ExpertForm::MIXTRAL
        }),
        ..BERT.ffn
    },
    ..NOMIC_BERT
};

/// `jina-bert-v2`: ALiBi; gate and up in one matrix, in two, or no gate.
pub(crate) const JINA_BERT_V2: Arch = Arch {
    name: "jina-bert-v2",
    embedding: EmbeddingForm {
        types: Presence::Required,
        ..NOMIC_BERT.embedding
    },
    norms: BlockNorms {
        again_attention: Some("attn_norm_2"),
        ..NOMIC_BERT.norms
    },
    attention: AttentionForm {
        rope: None,
        out_bias: Presence::Required,
        qk_norm: QkNorm::OptionalAll,
        alibi: Alibi::In(Models::All, 8.0),
        ..NOMIC_BERT.attention
    },
    ffn: FfnForm {
        activation: Activation::GatedFused(Glu::new(GluKind::Geglu)),
        bias: Presence::Optional,
        gate_biased: false,
        narrow: Some(UnaryKind::Gelu),
        ..Arch::CLASSIC.ffn
    },
    ..NOMIC_BERT
};

/// `jina-bert-v3`: BERT that rotates.
pub(crate) const JINA_BERT_V3: Arch = Arch {
    name: "jina-bert-v3",
    ffn: BERT.ffn,
    ..NOMIC_BERT
};
