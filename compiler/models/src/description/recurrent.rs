//! Recurrent layers, which mix tokens by a state of fixed size per sequence.

use tpc_ir::op::UnaryKind;

use super::presence::Presence;

/// Recurrent layers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RecurrentForm {
    /// The computation.
    pub mixer: RecurrentMixer,
    /// The layers that are recurrent.
    pub layers: RecurrentLayers,
}

/// The computation of a recurrent layer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RecurrentMixer {
    /// Mamba-1's selective scan after a convolution: `ssm_in`, `ssm_conv1d`, `ssm_x`, `ssm_dt`, `ssm_a`, `ssm_out`.
    Mamba1(Mamba1Form),
    /// Mamba-2's selective scan after a convolution: `ssm_in`, `ssm_conv1d`, `ssm_a`, `ssm_out`.
    Mamba2,
    /// The gated delta rule after a convolution: `attn_qkv`, `attn_gate`, `ssm_conv1d`, `ssm_a`, `ssm_out`.
    DeltaNet(DeltaNetForm),
    /// Kimi's delta attention: the gated delta rule with a decay per key element, after convolutions of queries, keys
    /// and values: `ssm_conv1d_q`, `ssm_conv1d_k`, `ssm_conv1d_v`, `ssm_beta`, `ssm_a`. It has the first layer's number
    /// of attention heads.
    Kda(KdaForm),
    /// Lightning attention: linear attention whose heads forget at fixed rates, with the heads of attention: `attn_qkv`
    /// (per head a query, a key and a value), `attn_norm_2`, `attn_gate`.
    Lightning,
    /// A gated convolution along a few steps: `shortconv.in_proj`, `shortconv.conv`, `shortconv.out_proj`.
    ShortConv,
}

/// Choices of Mamba-1's selective scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mamba1Form {
    /// The heads of the scan.
    pub heads: ScanHeads,
    /// Norms of the steps and of the scan's input and output projections (`B` and `C`).
    pub norms: ScanNorms,
    /// Bias of the convolution.
    pub conv_bias: Presence,
}

/// The heads of a selective scan, which decide the row order of `ssm_in` and `ssm_x`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScanHeads {
    /// A head per channel; `ssm_a` has a number per state element. `ssm.time_step_rank` is the rank of the projection
    /// to steps. Inputs come before gates, steps first.
    Channels,
    /// `ssm.time_step_rank` heads; `ssm_a` has a number each. The rank of the projection to steps is a sixteenth of the
    /// width, and at least 64. Each head's gate comes before its input, steps last.
    Given,
}

/// Norms of the steps and of the scan's input and output projections (`B` and `C`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScanNorms {
    /// Without weight, if `ssm.dt_b_c_rms` is true.
    PlainByKey,
    /// `ssm_dt_norm`, `ssm_b_norm` and `ssm_c_norm`.
    Weighted,
}

/// Choices of the gated delta rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeltaNetForm {
    /// Each value head's key head, if there are fewer key heads.
    pub key_heads: KeyHeads,
    /// The usual form of the projections to decay and correction. Either form is read.
    pub gates: GateForm,
    /// The output gate's function.
    pub out_gate: UnaryKind,
}

/// Each value head's key head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyHeads {
    /// Consecutive value heads share a key head.
    Consecutive,
    /// Value head `i` has key head `i` modulo their number.
    Interleaved,
}

/// Projections to the gates of decay and correction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateForm {
    /// `ssm_alpha` and `ssm_beta`
    Separate,
    /// `ssm_ba`: per key head the corrections of its value heads, then their decays.
    Fused,
}

/// Choices of Kimi's delta attention.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KdaForm {
    /// The projection to decays: one matrix, or two through a head's elements.
    pub decay_tensors: &'static [&'static str],
    /// The decay.
    pub decay: KdaDecay,
    /// The shape of `ssm_a`.
    pub decay_shape: DecayShape,
    /// The projection to the output gate, in the form of `decay_tensors`.
    pub gate_tensors: &'static [&'static str],
    /// The epsilon under the root that gives queries and keys unit length. `None` uses the norms' epsilon.
    pub unit_eps: Option<f32>,
}

/// A decay's logarithm, from a projection `f` with the bias `ssm_dt` and a number `a` per head, `ssm_a`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KdaDecay {
    /// `a · softplus(f)`
    Softplus,
    /// `kda.gate_lower_bound · sigmoid(a · f)`
    Bounded,
    /// `kda.gate_lower_bound · sigmoid(−a · f)` if the file has that key, else [`Self::Softplus`].
    SoftplusOrBounded,
}

/// The shape of a tensor with one number per head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecayShape {
    /// `[heads]`
    Row,
    /// `[1, heads]`
    Column,
}

/// The layers that are recurrent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecurrentLayers {
    /// All layers, without attention.
    All,
    /// All; attention runs in parallel, and the outputs are added.
    BesideAttention,
    /// The layers with an `attention.head_count_kv` of 0; others have attention.
    WithoutKvHeads,
    /// The layers that `attention.recurrent_layers` lists, else all but the last of every `full_attention_interval`,
    /// else of every `n`. The others have attention.
    AllButEvery(u32),
}

/// A layer's sublayers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sublayers {
    /// A token mixer and a feed-forward network.
    Both,
    /// A token mixer.
    Mixer,
    /// A feed-forward network if `feed_forward_length` is above 0, else a token mixer.
    Either,
    /// None if `feed_forward_length` is 0. Otherwise a feed-forward network, after attention if `attention.head_count`
    /// and `attention.head_count_kv` are above 0, or after `attn_output` alone if only the first is.
    ByCounts,
}
