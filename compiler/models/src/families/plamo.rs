//! PLaMo.

use crate::description::{Arch, BlockNorms, Residual};

/// `plamo`: parallel sublayers with one norm for both.
pub(crate) const PLAMO: Arch = Arch {
    name: "plamo",
    norms: BlockNorms::SHARED,
    residual: Residual::Parallel,
    ..Arch::CLASSIC
};
