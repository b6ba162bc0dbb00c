//! Chameleon.

use tpc_ir::op::RopeMode;

use crate::description::{Arch, AttentionForm, BlockNorms, HeadForm, KeyUse, QkNorm, RopeForm};

/// `chameleon`: the text part. Tokens 4 to 8195 are parts of images.
pub(crate) const CHAMELEON: Arch = Arch {
    name: "chameleon",
    norms: BlockNorms {
        swin: KeyUse::Read,
        ..BlockNorms::PRE
    },
    attention: AttentionForm {
        qk_norm: QkNorm::LayerHeads,
        rope: Some(RopeForm {
            mode: RopeMode::Norm,
            ..Arch::CLASSIC_ROPE
        }),
        ..Arch::CLASSIC.attention
    },
    head: HeadForm {
        hidden: Some([4, 8196]),
        ..Arch::CLASSIC.head
    },
    ..Arch::CLASSIC
};
