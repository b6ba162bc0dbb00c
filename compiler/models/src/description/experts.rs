//! Mixtures of experts.

use super::{KeyUse, Presence};

/// Whether layers have experts.
#[derive(Clone, Debug, PartialEq)]
pub enum Experts {
    /// No layer has.
    Never,
    /// No layer has; a file that counts experts is of a kind that is not described.
    Refused,
    /// Files with `expert_count` have, in the layers that the form names.
    IfCounted(ExpertForm),
    /// Every file has, in the layers that the form names.
    Always(ExpertForm),
}

impl Experts {
    /// The form of the experts, where there may be some.
    pub const fn form(&self) -> Option<&ExpertForm> {
        match self {
            Experts::Never | Experts::Refused => None,
            Experts::IfCounted(form) | Experts::Always(form) => Some(form),
        }
    }
}

/// A mixture of experts. `expert_count` and `expert_used_count` hold how many there are and how many a token goes to,
/// `expert_feed_forward_length` or else `feed_forward_length` the width of one. Where `expert_group_count` is above 1,
/// tokens go to experts of `expert_group_used_count` groups only: those whose two best experts together score highest.
#[derive(Clone, Debug, PartialEq)]
pub struct ExpertForm {
    /// Which layers have experts.
    pub layers: ExpertLayers,
    /// What makes weights of the router's logits.
    pub gating: Gating,
    /// Whether `expert_gating_func` overrides that: 1 for a softmax, 2 for a sigmoid, 3 for a softmax of those selected.
    pub gating_key: KeyUse,
    /// Bias of the router.
    pub router_bias: Presence,
    /// `exp_probs_b`, added to the weights for the selection alone.
    pub selection_bias: Presence,
    /// Whether the weights of a token are divided by their sum.
    pub weights: Weights,
    /// Whether `expert_weights_scale` multiplies the weights.
    pub weights_scale: KeyUse,
    /// What is multiplied by the weights.
    pub weighed: Weighed,
    /// Biases of the experts.
    pub bias: Presence,
    /// The expert that every token goes to.
    pub shared: Option<SharedForm>,
}

impl ExpertForm {
    /// The choices of Mixtral: experts in every layer, weighed by a softmax over all and divided by the sum of those
    /// selected.
    pub const CLASSIC: ExpertForm = ExpertForm {
        layers: ExpertLayers::All,
        gating: Gating::Softmax,
        gating_key: KeyUse::Ignored,
        router_bias: Presence::Absent,
        selection_bias: Presence::Absent,
        weights: Weights::Normalised,
        weights_scale: KeyUse::Ignored,
        weighed: Weighed::Outputs,
        bias: Presence::Absent,
        shared: None,
    };
}

/// Which layers have experts; the others have one dense network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpertLayers {
    /// All.
    All,
    /// All but the first `leading_dense_block_count`.
    AfterLeading,
    /// Of those after the first `leading_dense_block_count`, the last of every `interleave_moe_layer_step`.
    Interleaved,
    /// Those of which the file has a router.
    WithRouter,
}

/// What makes weights of the router's logits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gating {
    /// Softmax over all experts.
    Softmax,
    /// Softmax over the experts selected by their logits.
    SoftmaxOfSelected,
    /// The sigmoid of each expert's logit.
    Sigmoid,
}

/// Whether the weights of a token are divided by their sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weights {
    /// They stay as they are.
    Kept,
    /// They are.
    Normalised,
    /// Where `expert_weights_norm` is true.
    Keyed,
}

/// What is multiplied by the weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weighed {
    /// What experts say.
    Outputs,
    /// What experts read.
    Inputs,
}

/// The shared expert, one network for every token: `ffn_gate_shexp`, `ffn_up_shexp` and `ffn_down_shexp`. What it says is
/// added to what the chosen experts say.
#[derive(Clone, Debug, PartialEq)]
pub struct SharedForm {
    /// Its width.
    pub width: SharedWidth,
    /// `ffn_gate_inp_shexp`, whose product with the input decides by its sigmoid how much of the output counts.
    pub gate: Presence,
}

/// The width of the shared expert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharedWidth {
    /// `expert_shared_feed_forward_length`; models without that key have no shared expert.
    Given,
    /// `expert_shared_feed_forward_length` or else `feed_forward_length`.
    GivenOrDense,
    /// `expert_shared_feed_forward_length` or else the width of an expert.
    GivenOrExpert,
    /// `expert_shared_count` times `expert_shared_feed_forward_length` or else the width of an expert; models without
    /// a count have no shared expert.
    Counted,
    /// That of an expert.
    AsExpert,
}
