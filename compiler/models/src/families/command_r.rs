//! Command R, R+ and R7B, and the later mixture of experts.

use tpc_ir::op::{NormKind, RopeMode};

use crate::description::{
    Arch, AttentionForm, BlockNorms, DraftForm, ExpertForm, Experts, FfnForm, Gating, HeadForm,
    KeyUse, LogitScale, NormForm, Presence, QkNorm, Residual, RopeForm, RopeLayers, SharedForm,
    SharedWidth, Window,
};

/// `command-r`: only R+ normalises heads, each with its own weights.
pub(crate) const COMMAND_R: Arch = Arch {
    name: "command-r",
    norm: NormForm {
        kind: NormKind::Layer,
        bias: Presence::Absent,
        ..Arch::CLASSIC.norm
    },
    norms: BlockNorms::SHARED,
    residual: Residual::Parallel,
    attention: AttentionForm {
        qk_norm: QkNorm::OptionalHeads,
        rope: Some(RopeForm {
            mode: RopeMode::Norm,
            ..Arch::CLASSIC_ROPE
        }),
        ..Arch::CLASSIC.attention
    },
    head: HeadForm {
        logit_scale: LogitScale::Factor,
        ..Arch::CLASSIC.head
    },
    ..Arch::CLASSIC
};

/// `cohere2`: Command R with a window in three layers of four; only layers with a window rotate.
pub(crate) const COHERE2: Arch = Arch {
    name: "cohere2",
    attention: AttentionForm {
        rope: Some(RopeForm {
            mode: RopeMode::Norm,
            layers: RopeLayers::Windowed,
            ..Arch::CLASSIC_ROPE
        }),
        window: Window::AllButEvery(4),
        ..Arch::CLASSIC.attention
    },
    head: HeadForm {
        output: Presence::Absent,
        ..COMMAND_R.head
    },
    ..COMMAND_R
};

/// `cohere2moe`: the first of four layers has full attention; it rotates if it is dense.
pub(crate) const COHERE2MOE: Arch = Arch {
    name: "cohere2moe",
    norm: NormForm {
        rms: KeyUse::Read,
        ..COMMAND_R.norm
    },
    attention: AttentionForm {
        rope: Some(RopeForm {
            mode: RopeMode::Norm,
            layers: RopeLayers::WindowedOrLeading,
            ..Arch::CLASSIC_ROPE
        }),
        window: Window::AllButFirstOfEvery(4),
        ..Arch::CLASSIC.attention
    },
    ffn: FfnForm {
        experts: Experts::Always(ExpertForm {
            gating: Gating::Sigmoid,
            selection_bias: Presence::Absent,
            shared: Some(SharedForm {
                scale: 0.5,
                ..SharedForm::plain(SharedWidth::GivenIfCounted)
            }),
            ..ExpertForm::DEEPSEEK
        }),
        ..Arch::CLASSIC.ffn
    },
    drafts: Some(DraftForm::CLASSIC),
    ..COMMAND_R
};
