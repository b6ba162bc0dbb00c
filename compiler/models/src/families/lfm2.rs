//! LFM 2.

use crate::description::{
    Arch, AttentionForm, HeadForm, QkNorm, RecurrentForm, RecurrentLayers, RecurrentMixer, Window,
};

/// `lfm2`: short convolutions, with attention in some layers, windowed where the file gives a window.
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
        // What the files call a norm of the embedding is in truth that of the output.
        norm: "token_embd_norm",
        ..Arch::CLASSIC.head
    },
    ..Arch::CLASSIC
};
