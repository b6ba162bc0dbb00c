//! Mixtures of experts.

use super::presence::{KeyUse, Presence};

/// Whether an architecture has experts.
#[derive(Clone, Debug, PartialEq)]
pub enum Experts {
    /// No model has.
    Never,
    /// Models with experts exist and are not described: a file with `expert_count` is refused.
    Refused,
    /// Files with `expert_count` have.
    IfCounted(ExpertForm),
    /// Every file has.
    Always(ExpertForm),
}

impl Experts {
    /// The form of the experts, if some model has them.
    pub const fn form(&self) -> Option<&ExpertForm> {
        match self {
            Experts::Never | Experts::Refused => None,
            Experts::IfCounted(form) | Experts::Always(form) => Some(form),
        }
    }
}

/// A mixture of experts.
///
/// `expert_count` holds the number of experts, `expert_used_count` the number per token. If `expert_group_count` is above 1, a
/// token uses experts of `expert_group_used_count` groups only: those whose two best experts have the highest sum.
#[derive(Clone, Debug, PartialEq)]
pub struct ExpertForm {
    /// The layers with experts.
    pub layers: ExpertLayers,
    /// The width of an expert.
    pub width: ExpertWidth,
    /// The function from the router's logits to weights.
    pub gating: Gating,
    /// Whether `expert_gating_func` overrides it: 1 for a softmax, 2 for a sigmoid, 3 for a softmax of the selected.
    pub gating_key: KeyUse,
    /// Bias of the router.
    pub router_bias: Presence,
    /// `exp_probs_b`, added to the weights for the selection alone.
    pub selection_bias: Presence,
    /// The weights of a token's experts.
    pub weights: ExpertWeights,
    /// Whether `expert_weights_scale` multiplies the weights.
    pub weights_scale: KeyUse,
    /// The side of the experts that is multiplied by their weights.
    pub weighted: WeightedSide,
    /// Biases of the experts.
    pub bias: Presence,
    /// Whether the selected experts read and write a latent vector of `expert_latent_length` elements, if that key is
    /// present and not 0: `ffn_routed_down`, `ffn_routed_norm`, `ffn_routed_up`.
    pub latent: KeyUse,
    /// The shared expert.
    pub shared: Option<SharedForm>,
}

impl ExpertForm {
    /// The choices of Mixtral: experts in every layer, weighted by a softmax over all, divided by the sum of those
    /// selected.
    pub const CLASSIC: ExpertForm = ExpertForm {
        layers: ExpertLayers::All,
        width: ExpertWidth::GivenOrDense,
        gating: Gating::Softmax,
        gating_key: KeyUse::Ignored,
        router_bias: Presence::Never,
        selection_bias: Presence::Never,
        weights: ExpertWeights::SumToOne,
        weights_scale: KeyUse::Ignored,
        weighted: WeightedSide::Outputs,
        bias: Presence::Never,
        latent: KeyUse::Ignored,
        shared: None,
    };

    /// The choices of DeepSeek 2 and 3, which later models took over: dense layers first, then experts beside shared
    /// ones, whose gating and weights the keys decide.
    pub const DEEPSEEK: ExpertForm = ExpertForm {
        layers: ExpertLayers::AfterLeading,
        gating_key: KeyUse::Read,
        selection_bias: Presence::Optional,
        weights: ExpertWeights::ByKey,
        weights_scale: KeyUse::Read,
        shared: Some(SharedForm::plain(SharedWidth::Counted)),
        ..ExpertForm::CLASSIC
    };
}

/// The width of an expert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpertWidth {
    /// `expert_feed_forward_length` or else `feed_forward_length`.
    GivenOrDense,
    /// `expert_feed_forward_length` or else an equal share of `feed_forward_length`, which the experts of a token have
    /// together.
    GivenOrShareOfDense,
}

/// The layers with experts; the others have one dense network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpertLayers {
    /// All.
    All,
    /// All but the first `leading_dense_block_count`.
    AfterLeading,
    /// After the first `leading_dense_block_count`, the last of every `interleave_moe_layer_step`.
    Interleaved,
    /// As [`Self::Interleaved`]; none if `interleave_moe_layer_step` is 0.
    InterleavedUnless0,
    /// Those for which the file has a router.
    WithRouter,
}

/// The function from the router's logits to weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gating {
    /// Softmax over all experts.
    Softmax,
    /// Softmax over the experts selected by their logits.
    SoftmaxOfSelected,
    /// The sigmoid of each expert's logit.
    Sigmoid,
}

/// The weights of a token's experts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpertWeights {
    /// Those of the gating.
    AsGiven,
    /// Those of the gating, divided by their sum.
    SumToOne,
    /// [`Self::SumToOne`] if `expert_weights_norm` is true, else [`Self::AsGiven`].
    ByKey,
}

/// The side of the experts that is multiplied by their weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WeightedSide {
    /// Their outputs.
    Outputs,
    /// Their inputs.
    Inputs,
}

/// The shared expert, one network for every token: `ffn_gate_shexp`, `ffn_up_shexp` and `ffn_down_shexp`. Its output is
/// added to that of the selected experts.
#[derive(Clone, Debug, PartialEq)]
pub struct SharedForm {
    /// Its width.
    pub width: SharedWidth,
    /// `ffn_gate_inp_shexp`: the sigmoid of its product with the input multiplies the output.
    pub gate: Presence,
}

impl SharedForm {
    /// A shared expert without a gate.
    pub const fn plain(width: SharedWidth) -> SharedForm {
        SharedForm {
            width,
            gate: Presence::Never,
        }
    }

    /// A shared expert behind a gate.
    pub const fn gated(width: SharedWidth) -> SharedForm {
        SharedForm {
            width,
            gate: Presence::Required,
        }
    }
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
    /// `expert_shared_feed_forward_length` or else `expert_shared_count` times the width of an expert, once without a count.
    GivenOrCounted,
    /// The width of an expert.
    AsExpert,
}
