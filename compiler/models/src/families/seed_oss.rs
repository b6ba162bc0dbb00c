//! Seed-OSS.

use crate::description::{Arch, BlockNorms};

pub(crate) const SEED_OSS: Arch = Arch {
    name: "seed_oss",
    norms: BlockNorms::PRE_AS_POST,
    ..Arch::CLASSIC
};
