//! Gemma 3.

use tpc_ir::op::{Glu, GluKind};

use super::description::{
    Activation, Arch, AttentionForm, BlockNorms, EmbeddingForm, EmbeddingScale, FfnForm, HeadForm,
    KeyUse, QkNorm, RopeForm, ScaleOn, ScaleRule, Window, WindowedRope,
};

/// `gemma3`: norms around both halves, five windowed layers to one that sees everything. Norm weights in files already
/// include the 1 that the model adds. The 27B model, alone in having 62 layers, scales attention by its width.
pub(super) const GEMMA3: Arch = Arch {
    name: "gemma3",
    embedding: EmbeddingForm {
        scale: EmbeddingScale::RootOfWidth,
        ..Arch::CLASSIC.embedding
    },
    norms: BlockNorms::SANDWICH,
    attention: AttentionForm {
        qk_norm: QkNorm::Head,
        rope: Some(RopeForm {
            windowed: WindowedRope::Local(10_000.0),
            ..Arch::CLASSIC_ROPE
        }),
        scale: ScaleRule::WidthAtLayers(62),
        scale_on: ScaleOn::Queries,
        window: Window::AllButEvery(6),
        ..Arch::CLASSIC.attention
    },
    ffn: FfnForm {
        activation: Activation::Gated(Glu::new(GluKind::Geglu)),
        ..Arch::CLASSIC.ffn
    },
    head: HeadForm {
        softcap: KeyUse::Obeyed,
        ..Arch::CLASSIC.head
    },
    ..Arch::CLASSIC
};
