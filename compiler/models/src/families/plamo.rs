//! PLaMo.

use crate::description::{Arch, BlockNorms, Residual};

/// `plamo`: one norm for both halves, side by side.
pub(crate) const PLAMO: Arch = Arch {
    name: "plamo",
    norms: BlockNorms::SHARED,
    residual: Residual::Parallel,
    ..Arch::CLASSIC
};
