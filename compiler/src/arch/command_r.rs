//! Command R and R+.

use tpc_ir::op::{NormKind, RopeMode};

use super::description::{
    Arch, AttentionForm, BlockNorms, HeadForm, KeyUse, NormForm, Presence, QkNorm, Residual,
    RopeForm,
};

/// `command-r`: one layer norm without bias for both halves, side by side; R+ normalises queries and keys, each head
/// with its own weights.
pub(super) const COMMAND_R: Arch = Arch {
    name: "command-r",
    norm: NormForm {
        kind: NormKind::Layer,
        bias: Presence::Absent,
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
        logit_scale: KeyUse::Obeyed,
        ..Arch::CLASSIC.head
    },
    ..Arch::CLASSIC
};
