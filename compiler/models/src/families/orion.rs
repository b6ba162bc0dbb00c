//! Orion.

use crate::description::{Arch, NormForm};

pub(crate) const ORION: Arch = Arch {
    name: "orion",
    norm: NormForm::LAYER,
    ..Arch::CLASSIC
};
