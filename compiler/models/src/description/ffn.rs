//! The feed-forward sublayer.

use tpc_ir::op::{Glu, UnaryKind};

use super::experts::Experts;
use super::presence::Presence;

/// The feed-forward sublayer.
#[derive(Clone, Debug, PartialEq)]
pub struct FfnForm {
    /// The activation.
    pub activation: Activation,
    /// `ffn.act.scales`, which divides the output of the activation in dense layers without a gate.
    pub act_scales: Presence,
    /// Biases of dense layers.
    pub bias: Presence,
    /// Whether models have experts.
    pub experts: Experts,
}

/// The activation of a feed-forward network.
#[derive(Clone, Debug, PartialEq)]
pub enum Activation {
    /// `ffn_gate` and `ffn_up`
    Gated(Glu),
    /// `ffn_up`: the rows of the gate, then those of up. A file with `ffn_gate` is read as [`Self::Gated`].
    GatedFused(Glu),
    /// `ffn_up` alone. The functions apply one after another.
    Plain(&'static [UnaryKind]),
}
