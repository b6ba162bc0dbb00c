//! Mamba 2.

use crate::description::{Arch, RecurrentForm, RecurrentLayers, RecurrentMixer, Sublayers};

/// `mamba2`: selective scans alone.
pub(crate) const MAMBA2: Arch = Arch {
    name: "mamba2",
    sublayers: Sublayers::Mixer,
    recurrent: Some(RecurrentForm {
        mixer: RecurrentMixer::Mamba2,
        layers: RecurrentLayers::All,
    }),
    ..Arch::CLASSIC
};
