//! Muse.

use tpc_ir::op::{RopeMode, UnaryKind};

use crate::description::{
    Arch, AttentionForm, BlockNorms, EmbeddingForm, GateWidth, HeadForm, KeyUse, LogitScale,
    OutGate, Presence, QkNorm, RopeForm, RopeLayers, Window, WindowedRope,
};

/// `muse-glimmer`: window and positions in three of four layers.
pub(crate) const MUSE_GLIMMER: Arch = Arch {
    name: "muse-glimmer",
    embedding: EmbeddingForm {
        plain_norm: true,
        ..Arch::CLASSIC.embedding
    },
    norms: BlockNorms {
        post_eps: Some(1e-8),
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
