//! Mamba.

use crate::description::{
    Arch, AttentionForm, Mamba1Form, Presence, RecurrentForm, RecurrentLayers, RecurrentMixer,
    ScanHeads, ScanNorms, Sublayers,
};

pub(crate) const MAMBA: Arch = Arch {
    name: "mamba",
    recurrent: Some(RecurrentForm {
        mixer: RecurrentMixer::Mamba1(Mamba1Form {
            heads: ScanHeads::Channels,
            norms: ScanNorms::PlainByKey,
            conv_bias: Presence::Required,
        }),
        layers: RecurrentLayers::All,
    }),
    ..MAMBA2
};

pub(crate) const MAMBA2: Arch = Arch {
    name: "mamba2",
    sublayers: Sublayers::Mixer,
    recurrent: Some(RecurrentForm {
        mixer: RecurrentMixer::Mamba2,
        layers: RecurrentLayers::All,
    }),
    // Without attention layers, keys about heads have no effect.
    attention: AttentionForm {
        rope: None,
        ..Arch::CLASSIC.attention
    },
    ..Arch::CLASSIC
};
