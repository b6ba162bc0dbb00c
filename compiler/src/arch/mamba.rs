//! Mamba 2.

use super::description::{Arch, Halves, RecurrentForm, RecurrentLayers, RecurrentMixer};

/// `mamba2`: selective scans alone.
pub(super) const MAMBA2: Arch = Arch {
    name: "mamba2",
    halves: Halves::Mixer,
    recurrent: Some(RecurrentForm {
        mixer: RecurrentMixer::Mamba2,
        layers: RecurrentLayers::All,
    }),
    ..Arch::CLASSIC
};
