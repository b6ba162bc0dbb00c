//! Orion.

use crate::description::{Arch, NormForm};

/// `orion`: layer norms.
pub(crate) const ORION: Arch = Arch {
    name: "orion",
    norm: NormForm::LAYER,
    ..Arch::CLASSIC
};
