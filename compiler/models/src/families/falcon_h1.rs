use crate::description::{
    Arch, BlockNorms, FfnForm, Presence, RecurrentForm, RecurrentLayers, RecurrentMixer,
};

/// `falcon-h1`: attention and a selective scan in parallel. The files' weights include its multipliers.
pub(crate) const FALCON_H1: Arch = Arch {
    name: "falcon-h1",
    norms: BlockNorms {
        bare: &["ffn_norm"],
        ..BlockNorms::PRE
    },
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
