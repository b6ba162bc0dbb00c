//! Recurrent layers, which mix tokens by a state of fixed size per sequence.

/// Recurrent layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecurrentForm {
    /// The computation.
    pub mixer: RecurrentMixer,
    /// The layers that are recurrent.
    pub layers: RecurrentLayers,
}

/// The computation of a recurrent layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecurrentMixer {
    /// Mamba-2's selective scan behind a convolution along time: `ssm_in`, `ssm_conv1d`, `ssm_a`, `ssm_out`.
    Mamba2,
    /// The gated delta rule behind a convolution along time: `attn_qkv`, `attn_gate`, `ssm_conv1d`, `ssm_a`, `ssm_out`.
    DeltaNet(DeltaNetForm),
    /// A gated convolution along a few steps of time: `shortconv.in_proj`, `shortconv.conv`, `shortconv.out_proj`.
    ShortConv,
}

/// Choices of the gated delta rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeltaNetForm {
    /// The key head of each value head, if there are fewer key heads.
    pub key_heads: KeyHeads,
    /// The usual form of the projections to the gates of decay and correction. Either form is read.
    pub gates: GateForm,
}

/// The key head of each value head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyHeads {
    /// Consecutive value heads share a key head.
    Consecutive,
    /// Value head `i` has key head `i` modulo their number.
    InTurns,
}

/// Projections to the gates of decay and correction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateForm {
    /// `ssm_alpha` and `ssm_beta`
    Separate,
    /// `ssm_ba`: for each key head the corrections of its value heads, then their decays.
    Fused,
}

/// The layers that are recurrent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecurrentLayers {
    /// All. None has attention.
    All,
    /// All. All have attention too, and the two outputs are added.
    BesideAttention,
    /// Those with an `attention.head_count_kv` of 0. The others have attention.
    WithoutKvHeads,
    /// Those that `attention.recurrent_layers` lists, else all but the last of every `full_attention_interval`, else
    /// all but the last of every group of this many layers. The others have attention.
    AllButEvery(u32),
}

/// The sublayers of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sublayers {
    /// A token mixer and a feed-forward network.
    Both,
    /// A token mixer.
    Mixer,
    /// A feed-forward network if `feed_forward_length` is above 0, else a token mixer.
    Either,
}
