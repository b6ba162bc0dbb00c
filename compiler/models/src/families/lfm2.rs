//! LFM 2.

use crate::description::{
    Arch, AttentionForm, HeadForm, QkNorm, RecurrentForm, RecurrentLayers, RecurrentMixer, Window,
};

/// `lfm2`: short convolutions, with attention in some layers, which has a window if the file gives one.
pub(crate) const LFM2: Arch = Arch {
    name: "lfm2",
    attention: AttentionForm {
        qk_norm: QkNorm::Head,
        window: Window::All,
        ..Arch::CLASSIC.attention
    },
    recurrent: Some(RecurrentForm {
        mixer: RecurrentMixer::ShortConv,
        layers: RecurrentLayers::WithoutKvHeads,
    }),
    head: HeadForm {
        // The files call the norm of the output that of the embedding.
        norm: "token_embd_norm",
        ..Arch::CLASSIC.head
    },
    ..Arch::CLASSIC
};
