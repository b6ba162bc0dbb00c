//! Muse.

use tpc_ir::op::{RopeMode, UnaryKind};

use crate::description::{
    Arch, AttentionForm, BlockNorms, EmbeddingForm, ExpertForm, ExpertLatent, ExpertLayers,
    Experts, FfnForm, GateWidth, HeadForm, KeyUse, LogitScale, OutGate, PostEps, Presence, QkNorm,
    ResidualSum, RopeForm, RopeLayers, ValueNorm, WeightPlace, Window, WindowedRope,
};

/// `muse-glimmer`: window and positions in three of four layers.
pub(crate) const MUSE_GLIMMER: Arch = Arch {
    name: "muse-glimmer",
    embedding: EmbeddingForm {
        plain_norm: true,
        ..Arch::CLASSIC.embedding
    },
    norms: BlockNorms {
        post_eps: PostEps::Fixed(1e-8),
        ..BlockNorms::SANDWICH
    },
    attention: AttentionForm {
        qk_norm: QkNorm::Head,
        rope: Some(RopeForm {
            mode: RopeMode::Norm,
            layers: RopeLayers::Windowed,
            windowed: WindowedRope::OwnBase,
            ..Arch::CLASSIC_ROPE
        }),
        window: Window::AllButEvery(4),
        out_gate: OutGate::Projected(UnaryKind::Sigmoid, GateWidth::Elements, Presence::Required),
        ..Arch::CLASSIC.attention
    },
    head: HeadForm {
        output: Presence::Required,
        logit_scale: LogitScale::Factor,
        softcap: KeyUse::Read,
        ..Arch::CLASSIC.head
    },
    ..Arch::CLASSIC
};

/// `muse-spark`: experts work on a latent vector, and weights per element sum sublayers.
pub(crate) const MUSE_SPARK: Arch = Arch {
    name: "muse-spark",
    norms: BlockNorms {
        post_attention_plain: true,
        post_ffn: BlockNorms::SANDWICH.post_ffn,
        post_ffn_weight: WeightPlace::Input,
        post_eps: PostEps::Key,
        ..BlockNorms::PRE
    },
    residual_sum: ResidualSum::ByElement,
    attention: AttentionForm {
        rope: Some(RopeForm {
            mode: RopeMode::Norm,
            layers: RopeLayers::OnlyWindowed,
            windowed: WindowedRope::Local(10_000.0),
            ..Arch::CLASSIC_ROPE
        }),
        window: Window::Listed,
        out_norm: ValueNorm::Head,
        ..MUSE_GLIMMER.attention
    },
    ffn: FfnForm {
        experts: Experts::Always(ExpertForm {
            layers: ExpertLayers::All,
            selection_bias: Presence::Required,
            latent: Some(ExpertLatent {
                length: "moe_latent_size",
                required: true,
                down: "ffn_latent_down",
                norm: Some("ffn_pre_exp_norm"),
                each_norm: Some(("ffn_post_exp_norm", WeightPlace::Input)),
                sum_norm: None,
                up: "ffn_latent_up",
            }),
            shared: None,
            ..ExpertForm::DEEPSEEK
        }),
        ..Arch::CLASSIC.ffn
    },
    ..MUSE_GLIMMER
};
