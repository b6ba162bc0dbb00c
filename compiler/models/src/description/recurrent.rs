//! Recurrent layers: what mixes tokens without attention, or beside it, and keeps a state of fixed size per sequence.

/// Recurrent layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecurrentForm {
    /// What they compute.
    pub mixer: RecurrentMixer,
    /// Which layers they are.
    pub layers: RecurrentLayers,
}

/// What a recurrent layer computes.
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
    /// Which key head a value head meets, where there are fewer key heads.
    pub key_heads: KeyHeads,
    /// How files usually hold the projections to the gates of decay and correction. Either form is read.
    pub gates: GateForm,
}

/// Which key head a value head meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyHeads {
    /// Value heads that follow one another have the same.
    Consecutive,
    /// Key heads take turns.
    InTurns,
}

/// Projections to the gates of decay and correction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateForm {
    /// `ssm_alpha` and `ssm_beta`
    Separate,
    /// `ssm_ba`, whose rows are, key head by key head, the corrections of its value heads and then their decays.
    Fused,
}

/// Which layers are recurrent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecurrentLayers {
    /// All, and none has attention.
    All,
    /// All, and all have attention too: what the two say is added.
    BesideAttention,
    /// Those for which `attention.head_count_kv` is 0; the others have attention.
    WithoutKvHeads,
    /// Those that `attention.recurrent_layers` lists, or else all but the last of every `full_attention_interval`, or
    /// else of every so many; the others have attention.
    AllButEvery(u32),
}

/// Which halves a block has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sublayers {
    /// What mixes tokens, and a feed-forward network.
    Both,
    /// What mixes tokens.
    Mixer,
    /// A feed-forward network where `feed_forward_length` is above 0, else what mixes tokens.
    Either,
}
