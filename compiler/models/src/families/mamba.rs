//! Mamba 2.

use crate::description::{Arch, Halves, RecurrentForm, RecurrentLayers, RecurrentMixer};

/// `mamba2`: selective scans alone.
pub(crate) const MAMBA2: Arch = Arch {
    name: "mamba2",
    halves: Halves::Mixer,
    recurrent: Some(RecurrentForm {
        mixer: RecurrentMixer::Mamba2,
        layers: RecurrentLayers::All,
    }),
    ..Arch::CLASSIC
};
