//! Command R, R+ and R7B.

use tpc_ir::op::{NormKind, RopeMode};

use crate::description::{
    Arch, AttentionForm, BlockNorms, HeadForm, LogitScale, NormForm, Presence, QkNorm, Residual,
    RopeForm, RopeLayers, Window,
};

/// `command-r`: parallel sublayers with one layer norm without bias for both. R+ normalises the heads of queries and
/// keys, each with its own weights.
pub(crate) const COMMAND_R: Arch = Arch {
    name: "command-r",
    norm: NormForm {
        kind: NormKind::Layer,
        bias: Presence::Never,
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

/// `cohere2`: as Command R. Three layers of four have a window, and only those rotate.
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
        output: Presence::Never,
        ..COMMAND_R.head
    },
    ..COMMAND_R
};
