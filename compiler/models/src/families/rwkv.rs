//! RWKV 6 and 7, and the models that replace Qwen's attention by their recurrences.

use crate::description::{
    Arch, AttentionForm, BlockNorms, ChannelMix, EmbeddingForm, FfnForm, HeadForm, KeyUse,
    NormForm, Presence, RecurrentForm, RecurrentLayers, RecurrentMixer, Rwkv6Form, Rwkv7Form,
};

/// `arwkv7`: RWKV 7's recurrence with Qwen's norms and feed-forward network.
pub(crate) const ARWKV7: Arch = Arch {
    name: "arwkv7",
    recurrent: Some(RecurrentForm {
        mixer: RecurrentMixer::Rwkv7(Rwkv7Form {
            gate: Presence::Optional,
            norm: Presence::Optional,
        }),
        layers: RecurrentLayers::All,
    }),
    ..RWKV6QWEN2
};

pub(crate) const RWKV6: Arch = Arch {
    name: "rwkv6",
    recurrent: Some(RecurrentForm {
        mixer: RecurrentMixer::Rwkv6(Rwkv6Form::Bonus),
        layers: RecurrentLayers::All,
    }),
    rescale: KeyUse::Read,
    ffn: FfnForm {
        channel_mix: Some(ChannelMix::Gated),
        ..Arch::CLASSIC.ffn
    },
    ..RWKV7
};

/// `rwkv6qwen2`: gated linear attention with RWKV 6's decays, and Qwen's norms and feed-forward network.
pub(crate) const RWKV6QWEN2: Arch = Arch {
    name: "rwkv6qwen2",
    recurrent: Some(RecurrentForm {
        mixer: RecurrentMixer::Rwkv6(Rwkv6Form::Gated),
        layers: RecurrentLayers::All,
    }),
    attention: AttentionForm {
        rope: None,
        ..Arch::CLASSIC.attention
    },
    head: HeadForm {
        output: Presence::Required,
        ..Arch::CLASSIC.head
    },
    ..Arch::CLASSIC
};

pub(crate) const RWKV7: Arch = Arch {
    name: "rwkv7",
    embedding: EmbeddingForm {
        norm: Presence::Required,
        ..Arch::CLASSIC.embedding
    },
    norm: NormForm::LAYER,
    norms: BlockNorms {
        pre_ffn: Some("attn_norm_2"),
        ..BlockNorms::PRE
    },
    recurrent: Some(RecurrentForm {
        mixer: RecurrentMixer::Rwkv7(Rwkv7Form {
            gate: Presence::Required,
            norm: Presence::Required,
        }),
        layers: RecurrentLayers::All,
    }),
    ffn: FfnForm {
        channel_mix: Some(ChannelMix::Plain),
        ..Arch::CLASSIC.ffn
    },
    ..RWKV6QWEN2
};
