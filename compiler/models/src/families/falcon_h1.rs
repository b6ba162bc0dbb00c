//! Falcon H1.

use crate::description::{Arch, FfnForm, Presence, RecurrentForm, RecurrentLayers, RecurrentMixer};

/// `falcon-h1`: attention and a selective scan side by side in every layer. Files have its multipliers in the weights.
pub(crate) const FALCON_H1: Arch = Arch {
    name: "falcon-h1",
    recurrent: Some(RecurrentForm {
        mixer: RecurrentMixer::Mamba2,
        layers: RecurrentLayers::BesideAttention,
    }),
    ffn: FfnForm {
        bias: Presence::Optional,
        ..Arch::CLASSIC.ffn
    },
    ..Arch::CLASSIC
};
