use tpc_ir::op::{Glu, UnaryKind};

use super::experts::Experts;
use super::presence::{KeyUse, Presence};

/// The feed-forward sublayer.
#[derive(Clone, Debug, PartialEq)]
pub struct FfnForm {
    /// The activation.
    pub activation: Activation,
    /// Bounds of the activation.
    pub limits: SwigluLimits,
    /// Width of dense layers.
    pub width: DenseWidth,
    /// `ffn.act.scales`: divisors of the activation's output in dense layers without a gate.
    pub act_scales: Presence,
    /// Biases of dense layers.
    pub bias: Presence,
    /// True if [`Self::bias`] includes `ffn_gate`.
    pub gate_biased: bool,
    /// Function of `ffn_up` in files whose `ffn_up` has the width once and that lack `ffn_gate`. For
    /// [`Activation::GatedFused`].
    pub narrow: Option<UnaryKind>,
    /// `hidden_activation`, which names the gated function. A file without the key, or with an unknown name, has the
    /// function of [`Self::activation`].
    pub by_name: KeyUse,
    /// Replaces the network: RWKV's channel mix.
    pub channel_mix: Option<ChannelMix>,
    /// Experts.
    pub experts: Experts,
}

/// RWKV's feed-forward network, `channel_mix_key` and `channel_mix_value` with a squared ReLU, which reads a mixture of
/// each token and the previous one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelMix {
    /// The network alone.
    Plain,
    /// The sigmoid of `channel_mix_receptance`, which reads another mixture, multiplies the output.
    Gated,
}

/// Bounds of a gated SiLU per layer: `swiglu_clamp_exp` for experts, `swiglu_clamp_shexp` for dense networks and the
/// shared expert; 0 means no bound. Up is limited to ±bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwigluLimits {
    /// The keys are ignored.
    Ignored,
    /// The gate is at most the bound.
    OnGate,
    /// Same as [`Self::OnGate`]. `swiglu_clamp_exp` is the default of both keys.
    OnGateOfAll,
    /// The activated gate is at most the bound.
    OnActivated,
}

/// Width of a dense layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DenseWidth {
    /// `feed_forward_length`
    Given,
    /// `embedding_length`
    Embedding,
    /// Half of `feed_forward_length`, which includes gate and up.
    Half,
}

/// Activation of a feed-forward network.
#[derive(Clone, Debug, PartialEq)]
pub enum Activation {
    /// `ffn_gate` and `ffn_up`.
    Gated(Glu),
    /// `ffn_up`: the gate's rows, then up's rows. tpc reads a file with `ffn_gate` as [`Self::Gated`].
    GatedFused(Glu),
    /// `ffn_gate` and `ffn_up` with SiTU: `β·tanh(gate/β)·sigmoid(gate) · γ·tanh(up/γ)`. `β` is `activation.situ_beta`,
    /// `γ` is `activation.situ_linear_beta`. Up is unbounded unless `γ` is above 0.
    Situ,
    /// `ffn_up` alone, then xIELU, whose parameters `xielu.alpha_n`, `xielu.alpha_p`, `xielu.beta` and `xielu.eps` may
    /// differ between layers. The keys do not have a prefix.
    Xielu,
    /// `ffn_up` alone, then these functions in order.
    Plain(&'static [UnaryKind]),
}
