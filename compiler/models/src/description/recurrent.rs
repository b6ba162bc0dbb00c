use tpc_ir::op::UnaryKind;

use super::presence::Presence;

/// Recurrent layers, which mix tokens through a state of fixed size per sequence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RecurrentForm {
    /// Computation of a recurrent layer.
    pub mixer: RecurrentMixer,
    /// Recurrent layers.
    pub layers: RecurrentLayers,
}

/// Computation of a recurrent layer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RecurrentMixer {
    /// Mamba-1's selective scan after a convolution: `ssm_in`, `ssm_conv1d`, `ssm_x`, `ssm_dt`, `ssm_a`, `ssm_out`.
    Mamba1(Mamba1Form),
    /// Mamba-2's selective scan after a convolution: `ssm_in`, `ssm_conv1d`, `ssm_a`, `ssm_out`.
    Mamba2,
    /// The gated delta rule after a convolution: `attn_qkv`, `attn_gate`, `ssm_conv1d`, `ssm_a`, `ssm_out`.
    DeltaNet(DeltaNetForm),
    /// Kimi's delta attention: the gated delta rule with a decay per key element, after convolutions of queries, keys
    /// and values: `ssm_conv1d_q`, `ssm_conv1d_k`, `ssm_conv1d_v`, `ssm_beta`, `ssm_a`. Has the first layer's number of
    /// attention heads.
    Kda(KdaForm),
    /// Lightning attention: linear attention with attention's heads, which forget at fixed rates: `attn_qkv` (per head
    /// a query, a key and a value), `attn_norm_2`, `attn_gate`.
    Lightning,
    /// RWKV 6's recurrence, `time_mix_*`, with mixtures of each token and the previous one that depend on both.
    Rwkv6(Rwkv6Form),
    /// RWKV 7's recurrence, `time_mix_*`, whose state is corrected before each token is added.
    Rwkv7(Rwkv7Form),
    /// A gated convolution along a few steps: `shortconv.in_proj`, `shortconv.conv`, `shortconv.out_proj`.
    ShortConv,
}

/// Choices of Mamba-1's selective scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mamba1Form {
    /// Heads of the scan.
    pub heads: ScanHeads,
    /// Norms of the steps and of the scan's `B` and `C`.
    pub norms: ScanNorms,
    /// Bias of the convolution.
    pub conv_bias: Presence,
}

/// Heads of a selective scan, which decide the row order of `ssm_in` and `ssm_x`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScanHeads {
    /// A head per channel; `ssm_a` has a number per state element. `ssm.time_step_rank` is the rank of the projection
    /// to steps. Inputs precede gates, and steps come first.
    Channels,
    /// `ssm.time_step_rank` heads; `ssm_a` has a number per head. The rank of the projection to steps is a sixteenth of
    /// the width, at least 64. Each head's gate precedes its input, and steps come last.
    Given,
}

/// Norms of the steps and of the scan's `B` and `C`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScanNorms {
    /// Norms without weight, if `ssm.dt_b_c_rms` is true.
    PlainByKey,
    /// `ssm_dt_norm`, `ssm_b_norm` and `ssm_c_norm`.
    Weighted,
}

/// Choices of the gated delta rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeltaNetForm {
    /// Key head of each value head, if there are fewer key heads.
    pub key_heads: KeyHeads,
    /// Usual form of the projections to decay and correction. tpc reads both forms.
    pub gates: GateForm,
    /// Function of the output gate.
    pub out_gate: UnaryKind,
}

/// Key head of each value head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyHeads {
    /// Consecutive value heads share a key head.
    Consecutive,
    /// Value head `i` has key head `i` modulo the number of key heads.
    Interleaved,
}

/// Projections to decay and correction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateForm {
    /// `ssm_alpha` and `ssm_beta`
    Separate,
    /// `ssm_ba`: per key head the corrections of its value heads, then their decays.
    Fused,
}

/// Choices of RWKV 6's recurrence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rwkv6Form {
    /// A bonus for the token itself, `time_mix_first`, a norm of each head, `time_mix_ln`, and a SiLU gate.
    Bonus,
    /// Gated linear attention: keys are multiplied by 1 minus their decay, heads may share keys and values
    /// (`attention.head_count_kv`), and the gate is a sigmoid.
    Gated,
}

/// Choices of RWKV 7's recurrence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rwkv7Form {
    /// `time_mix_g1` and `time_mix_g2`, the gate of the output. Without it there are five mixtures instead of six.
    pub gate: Presence,
    /// `time_mix_ln`, a norm of each head.
    pub norm: Presence,
}

/// Choices of Kimi's delta attention.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KdaForm {
    /// Projection to decays: one matrix, or two through a head's elements.
    pub decay_tensors: &'static [&'static str],
    /// Formula of the decay.
    pub decay: KdaDecay,
    /// Shape of `ssm_a`.
    pub decay_shape: DecayShape,
    /// Projection to the output gate, in the form of `decay_tensors`.
    pub gate_tensors: &'static [&'static str],
    /// Epsilon under the root that gives queries and keys unit length; `None` for the norms' epsilon.
    pub unit_eps: Option<f32>,
}

/// Logarithm of a decay, from a projection `f` with the bias `ssm_dt` and a number `a` per head, `ssm_a`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KdaDecay {
    /// `a · softplus(f)`
    Softplus,
    /// `kda.gate_lower_bound · sigmoid(a · f)`
    Bounded,
    /// `kda.gate_lower_bound · sigmoid(−a · f)` if the file has this key, else [`Self::Softplus`].
    SoftplusOrBounded,
}

/// Shape of a tensor with one number per head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecayShape {
    /// `[heads]`
    Row,
    /// `[1, heads]`
    Column,
}

/// Recurrent layers of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecurrentLayers {
    /// All layers, without attention.
    All,
    /// All layers; attention runs in parallel, and the outputs are added.
    BesideAttention,
    /// The layers with an `attention.head_count_kv` of 0; other layers have attention.
    WithoutKvHeads,
    /// The layers that `attention.recurrent_layers` lists, else all but the last of every `full_attention_interval`,
    /// else of every `n`. Other layers have attention.
    AllButEvery(u32),
}

/// Sublayers of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sublayers {
    /// A token mixer and a feed-forward network.
    Both,
    /// A token mixer.
    Mixer,
    /// A feed-forward network if `feed_forward_length` is above 0, else a token mixer.
    Either,
    /// No sublayers if `feed_forward_length` is 0. Otherwise a feed-forward network, after attention if
    /// `attention.head_count` and `attention.head_count_kv` are above 0, or after `attn_output` alone if only the first
    /// is.
    ByCounts,
}
