//! The feed-forward half of a block.

use tpc_ir::op::{Glu, UnaryKind};

use super::experts::Experts;
use super::presence::Presence;

/// The feed-forward half of a block.
#[derive(Clone, Debug, PartialEq)]
pub struct FfnForm {
    /// The activation.
    pub activation: Activation,
    /// `ffn.act.scales`, by which what the activation gives is divided, of dense layers without a gate.
    pub act_scales: Presence,
    /// Biases, of dense layers.
    pub bias: Presence,
    /// Whether layers have experts.
    pub experts: Experts,
}

/// The activation of a feed-forward network.
#[derive(Clone, Debug, PartialEq)]
pub enum Activation {
    /// `ffn_gate` and `ffn_up`
    Gated(Glu),
    /// `ffn_up` whose rows are those of the gate and then of up; a file with `ffn_gate` is read as [`Self::Gated`].
    GatedFused(Glu),
    /// `ffn_up` alone; the functions one after another.
    Plain(&'static [UnaryKind]),
}
