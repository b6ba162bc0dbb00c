//! Gemma's encoders, whose tokens attend to later tokens too.

use super::gemma::GEMMA3;
use crate::description::{
    Arch, AttentionForm, Direction, EmbeddingForm, HeadForm, HeadSizes, KeyUse, ModelResult,
    Presence, QkvForm, RopeForm, ScaleOn, ScaleRule, ValueNorm, WindowKind, WindowedRope,
};

/// `gemma-embedding`: Gemma 3 with symmetric windows.
pub(crate) const GEMMA_EMBEDDING: Arch = Arch {
    name: "gemma-embedding",
    attention: AttentionForm {
        direction: Direction::Bidirectional,
        rope: Some(RopeForm {
            windowed: WindowedRope::OwnBase,
            ..Arch::CLASSIC_ROPE
        }),
        scale: ScaleRule::Head,
        window_kind: WindowKind::Symmetric,
        ..GEMMA3.attention
    },
    head: HeadForm {
        result: ModelResult::Hidden,
        ..Arch::CLASSIC.head
    },
    ..GEMMA3
};

/// `gemma-embedding2`: embeddings per layer without tokens of their own, and a projected result.
pub(crate) const GEMMA_EMBEDDING2: Arch = Arch {
    name: "gemma-embedding2",
    embedding: EmbeddingForm {
        per_layer: KeyUse::Read,
        per_layer_tokens: Presence::Absent,
        ..GEMMA3.embedding
    },
    layer_scale: Presence::Required,
    attention: AttentionForm {
        qkv: QkvForm::Separate,
        qkv_bias: Presence::Absent,
        head_sizes: HeadSizes::WindowedOwn,
        value_norm: ValueNorm::Head,
        scale: ScaleRule::One,
        scale_on: ScaleOn::Logits,
        ..GEMMA_EMBEDDING.attention
    },
    head: HeadForm {
        result: ModelResult::Projected,
        ..GEMMA_EMBEDDING.head
    },
    ..GEMMA_EMBEDDING
};
