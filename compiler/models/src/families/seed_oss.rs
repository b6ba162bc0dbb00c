//! Seed-OSS.

use crate::description::{Arch, BlockNorms};

/// `seed_oss`
pub(crate) const SEED_OSS: Arch = Arch {
    name: "seed_oss",
    norms: BlockNorms {
        // What the files call a norm after attention is in truth the one before the feed-forward half.
        pre_ffn: Some("post_attention_norm"),
        ..BlockNorms::PRE
    },
    ..Arch::CLASSIC
};
