//! Gemma 1 to 4.

use tpc_ir::op::{Glu, GluKind};

use crate::description::{
    Activation, Arch, AttentionForm, BlockNorms, DenseBeside, EmbeddingForm, EmbeddingScale,
    ExpertForm, ExpertInput, ExpertLayers, Experts, FfnForm, HeadForm, HeadSizes, KeyUse, Models,
    Presence, QkNorm, RopeFactors, RopeForm, RouterInput, ScaleOn, ScaleRule, ValueNorm,
    ValueSource, Window, WindowedRope,
};

/// `gemma`: the norm weights of all Gemma files include the 1 that the model adds.
pub(crate) const GEMMA: Arch = Arch {
    name: "gemma",
    embedding: EmbeddingForm {
        scale: EmbeddingScale::RootOfWidth,
        ..Arch::CLASSIC.embedding
    },
    attention: AttentionForm {
        scale_on: ScaleOn::Queries,
        ..Arch::CLASSIC.attention
    },
    ffn: FfnForm {
        activation: Activation::Gated(Glu::new(GluKind::Geglu)),
        ..Arch::CLASSIC.ffn
    },
    head: HeadForm {
        output: Presence::Absent,
        ..Arch::CLASSIC.head
    },
    ..Arch::CLASSIC
};

/// `gemma2`: only the 27B model (46 layers) scales attention by its width.
pub(crate) const GEMMA2: Arch = Arch {
    name: "gemma2",
    norms: BlockNorms::SANDWICH,
    attention: AttentionForm {
        scale: ScaleRule::WidthIn(Models::WithLayers(46)),
        scale_on: ScaleOn::Queries,
        softcap: KeyUse::ReadOr(50.0),
        window: Window::AllButEvery(2),
        window_default: Some(4096),
        rope: Some(RopeForm {
            windowed: WindowedRope::OwnBase,
            ..Arch::CLASSIC_ROPE
        }),
        ..Arch::CLASSIC.attention
    },
    head: HeadForm {
        softcap: KeyUse::ReadOr(30.0),
        ..GEMMA.head
    },
    ..GEMMA
};

/// `gemma3`: only the 27B model (62 layers) scales attention by its width.
pub(crate) const GEMMA3: Arch = Arch {
    name: "gemma3",
    norms: BlockNorms::SANDWICH,
    attention: AttentionForm {
        qk_norm: QkNorm::Head,
        rope: Some(RopeForm {
            windowed: WindowedRope::Local(10_000.0),
            ..Arch::CLASSIC_ROPE
        }),
        scale: ScaleRule::WidthIn(Models::WithLayers(62)),
        scale_on: ScaleOn::Queries,
        window: Window::AllButEvery(6),
        ..Arch::CLASSIC.attention
    },
    head: HeadForm {
        softcap: KeyUse::Read,
        ..Arch::CLASSIC.head
    },
    ..GEMMA
};

/// `gemma4`: full-attention layers use keys as values. E2B and E4B have embeddings per layer and shared caches. The
/// layers of 26B have a dense network and experts, each with its own norms.
pub(crate) const GEMMA4: Arch = Arch {
    name: "gemma4",
    embedding: EmbeddingForm {
        per_layer: KeyUse::Read,
        ..GEMMA.embedding
    },
    norms: BlockNorms::SANDWICH,
    layer_scale: Presence::Optional,
    attention: AttentionForm {
        qkv_bias: Presence::Absent,
        value_source: ValueSource::ProjectedOrKeys,
        value_norm: ValueNorm::Head,
        shared_kv: KeyUse::Read,
        head_sizes: HeadSizes::WindowedOwn,
        qk_norm: QkNorm::Head,
        rope: Some(RopeForm {
            factors: RopeFactors::One,
            windowed: WindowedRope::Local(10_000.0),
            ..Arch::CLASSIC_ROPE
        }),
        scale: ScaleRule::One,
        window: Window::AllButEvery(6),
        ..Arch::CLASSIC.attention
    },
    ffn: FfnForm {
        experts: Experts::IfCounted(ExpertForm {
            layers: ExpertLayers::WithRouter,
            input: ExpertInput::Stream("pre_ffw_norm_2"),
            router_input: RouterInput::ScaledStream,
            output_scale: Presence::Optional,
            norm: Some("post_ffw_norm_2"),
            dense: Some(DenseBeside {
                presence: Presence::Required,
                norm: Some("post_ffw_norm_1"),
                scale: 1.0,
            }),
            ..ExpertForm::CLASSIC
        }),
        ..GEMMA.ffn
    },
    head: HeadForm {
        softcap: KeyUse::ReadOr(30.0),
        ..Arch::CLASSIC.head
    },
    ..GEMMA
};
