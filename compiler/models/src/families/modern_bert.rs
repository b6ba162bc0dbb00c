//! ModernBERT, NeoBERT and EuroBERT: encoders that normalise the inputs of sublayers.

use tpc_ir::op::{Glu, GluKind, NormKind, RopeMode};

use crate::description::{
    Activation, Arch, AttentionForm, BlockNorms, Direction, EmbeddingForm, FfnForm, HeadForm,
    KeyUse, ModelResult, NormForm, Presence, QkvForm, RopeForm, ScoreForm, Window, WindowKind,
    WindowedRope,
};

pub(crate) const EUROBERT: Arch = Arch {
    name: "eurobert",
    attention: AttentionForm {
        direction: Direction::BidirectionalByKey,
        ..Arch::CLASSIC.attention
    },
    head: HeadForm {
        result: ModelResult::Hidden,
        ..Arch::CLASSIC.head
    },
    ..Arch::CLASSIC
};

/// `modern-bert`: the first of three layers attends to all tokens, others to a symmetric window.
pub(crate) const MODERN_BERT: Arch = Arch {
    name: "modern-bert",
    embedding: EmbeddingForm {
        norm: Presence::Required,
        ..Arch::CLASSIC.embedding
    },
    norm: NormForm {
        kind: NormKind::Layer,
        ..Arch::CLASSIC.norm
    },
    norms: BlockNorms {
        first_optional: true,
        ..BlockNorms::PRE
    },
    attention: AttentionForm {
        qkv: QkvForm::Fused,
        qkv_bias: Presence::Absent,
        rope: Some(RopeForm {
            windowed: WindowedRope::OwnBase,
            ..Arch::CLASSIC_ROPE
        }),
        window: Window::AllButFirstOfEvery(3),
        window_kind: WindowKind::Symmetric,
        ..EUROBERT.attention
    },
    ffn: FfnForm {
        activation: Activation::GatedFused(Glu::new(GluKind::GegluErf)),
        by_name: KeyUse::Read,
        ..Arch::CLASSIC.ffn
    },
    head: HeadForm {
        scores: ScoreForm::GeluOfMean,
        ..EUROBERT.head
    },
    ..EUROBERT
};

pub(crate) const NEO_BERT: Arch = Arch {
    name: "neo-bert",
    attention: AttentionForm {
        qkv: QkvForm::Fused,
        qkv_bias: Presence::Absent,
        rope: Some(RopeForm {
            mode: RopeMode::Norm,
            ..Arch::CLASSIC_ROPE
        }),
        ..EUROBERT.attention
    },
    ffn: FfnForm {
        activation: Activation::GatedFused(Glu::new(GluKind::Swiglu)),
        ..Arch::CLASSIC.ffn
    },
    head: HeadForm {
        norm: Some("enc.output_norm"),
        ..EUROBERT.head
    },
    ..EUROBERT
};
