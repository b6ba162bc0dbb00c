//! Mixtures of experts.

use super::presence::{KeyUse, Presence};

/// The experts of an architecture.
#[derive(Clone, Debug, PartialEq)]
pub enum Experts {
    /// No model has experts.
    None,
    /// Models with experts are not described: a file with `expert_count` is refused.
    Unsupported,
    /// Files with `expert_count` have experts.
    IfCounted(ExpertForm),
    /// Every file has experts.
    Always(ExpertForm),
}

impl Experts {
    /// Returns the experts' form, if some model has experts.
    pub const fn form(&self) -> Option<&ExpertForm> {
        match self {
            Experts::None | Experts::Unsupported => None,
            Experts::IfCounted(form) | Experts::Always(form) => Some(form),
        }
    }
}

/// A mixture of experts.
///
/// `expert_count` is the number of experts, `expert_used_count` the number per token. If `expert_group_count` is above
/// 1, a token uses only experts of the `expert_group_used_count` groups whose two best experts have the highest sum.
#[derive(Clone, Debug, PartialEq)]
pub struct ExpertForm {
    /// The layers with experts.
    pub layers: ExpertLayers,
    /// An expert's width.
    pub width: ExpertWidth,
    /// The function from router logits to weights.
    pub gating: Gating,
    /// `expert_gating_func`, which overrides it: 1 softmax, 2 sigmoid, 3 softmax of the selected, 4 root of a softplus.
    pub gating_key: KeyUse,
    /// Bias of the router.
    pub router_bias: Presence,
    /// A bias for the selection alone.
    pub selection_bias: Presence,
    /// The tensor of the selection bias.
    pub selection_tensor: &'static str,
    /// `hash_layer_count`. In this number of first layers each vocabulary token has fixed experts: `ffn_gate_tid2eid`,
    /// without a selection bias.
    pub by_token: KeyUse,
    /// The weights of a token's experts.
    pub weights: ExpertWeights,
    /// `expert_weights_scale`, a factor on the weights.
    pub weights_scale: KeyUse,
    /// The side that the weights multiply.
    pub weighted: WeightedSide,
    /// The experts' input.
    pub input: ExpertInput,
    /// The router's input.
    pub router_input: RouterInput,
    /// Biases of the experts.
    pub bias: Presence,
    /// `expert_latent_length`. If not 0, the selected experts read and write a latent vector of this length:
    /// `ffn_routed_down`, `ffn_routed_norm`, `ffn_routed_up`.
    pub latent: KeyUse,
    /// `experts_per_group`: each group of this many experts has a further expert, `ffn_gate_chexps`, `ffn_up_chexps`,
    /// `ffn_down_chexps`. A selected expert selects its group's further expert. Further experts read the selected
    /// experts' combined output and add `expert_group_scale` times their own. Further expert `g` takes the routing
    /// weight of expert `g`.
    pub groups: KeyUse,
    /// A dense network in parallel with the experts; the outputs are added.
    pub dense: Option<DenseBeside>,
    /// The shared expert.
    pub shared: Option<SharedForm>,
}

impl ExpertForm {
    /// The usual choices: experts in every layer, weighted by a softmax over all experts, divided by the sum of the
    /// selected weights.
    pub const CLASSIC: ExpertForm = ExpertForm {
        layers: ExpertLayers::All,
        width: ExpertWidth::GivenOrDense,
        gating: Gating::Softmax,
        gating_key: KeyUse::Ignored,
        router_bias: Presence::Absent,
        selection_bias: Presence::Absent,
        selection_tensor: "exp_probs_b.bias",
        by_token: KeyUse::Ignored,
        weights: ExpertWeights::SumToOne,
        weights_scale: KeyUse::Ignored,
        weighted: WeightedSide::Outputs,
        input: ExpertInput::Sublayer,
        router_input: RouterInput::Experts,
        bias: Presence::Absent,
        latent: KeyUse::Ignored,
        groups: KeyUse::Ignored,
        dense: None,
        shared: None,
    };

    /// Mixtral's widths: experts have a dense network's width; `expert_feed_forward_length` is ignored.
    pub const MIXTRAL: ExpertForm = ExpertForm {
        width: ExpertWidth::AsDense,
        ..ExpertForm::CLASSIC
    };

    /// DeepSeek 2 and 3, and later models: dense layers first, then routed and shared experts. Keys decide gating and
    /// weights.
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

/// The experts' input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpertInput {
    /// The sublayer's input.
    Sublayer,
    /// The layer's input, normalised by this tensor.
    Layer(&'static str),
}

/// The router's input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouterInput {
    /// The experts' input.
    Experts,
    /// The layer's input, before its norm.
    Layer,
}

/// A dense network in parallel with the experts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DenseBeside {
    /// The network's presence, as shown by `ffn_up`.
    pub presence: Presence,
    /// Factor on the sum of both.
    pub scale: f32,
}

/// An expert's width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpertWidth {
    /// `feed_forward_length`
    AsDense,
    /// `expert_feed_forward_length` or else `feed_forward_length`.
    GivenOrDense,
    /// `expert_feed_forward_length` or else an equal share of `feed_forward_length`, the width of a token's experts
    /// together.
    GivenOrShareOfDense,
}

/// The layers with experts; others have one dense network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpertLayers {
    /// All.
    All,
    /// All but the first `leading_dense_block_count`.
    AfterLeading,
    /// After the first `leading_dense_block_count`, the last of every `interleave_moe_layer_step`.
    Interleaved,
    /// Same as [`Self::Interleaved`], but all dense if `interleave_moe_layer_step` is 0.
    InterleavedUnless0,
    /// Layers with a router in the file.
    WithRouter,
}

/// The function from router logits to weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gating {
    /// Softmax over all experts.
    Softmax,
    /// Softmax over the experts selected by their logits.
    SoftmaxOfSelected,
    /// Each logit's sigmoid.
    Sigmoid,
    /// The root of each logit's softplus.
    RootSoftplus,
}

/// The weights of a token's experts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpertWeights {
    /// The gating's weights.
    AsGiven,
    /// The gating's weights, divided by their sum.
    SumToOne,
    /// [`Self::SumToOne`] if `expert_weights_norm` is true, else [`Self::AsGiven`].
    ByKey,
}

/// The side of the experts that weights multiply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WeightedSide {
    /// Their outputs.
    Outputs,
    /// Their inputs.
    Inputs,
}

/// The shared expert, a network for every token: `ffn_gate_shexp`, `ffn_up_shexp` and `ffn_down_shexp`. Its output is
/// added to the selected experts' output.
#[derive(Clone, Debug, PartialEq)]
pub struct SharedForm {
    /// The width of the shared expert.
    pub width: SharedWidth,
    /// The usual form of gate and up. Either form is read.
    pub gate_up: SharedGate,
    /// Factor on the sum of shared and routed output.
    pub scale: f32,
    /// `ffn_gate_inp_shexp`: the sigmoid of its product with the input multiplies the output.
    pub gate: Presence,
}

impl SharedForm {
    /// Returns a shared expert without a gate.
    pub const fn plain(width: SharedWidth) -> SharedForm {
        SharedForm {
            width,
            gate_up: SharedGate::Separate,
            scale: 1.0,
            gate: Presence::Absent,
        }
    }

    /// Returns a gated shared expert.
    pub const fn with_gate(width: SharedWidth) -> SharedForm {
        SharedForm {
            gate: Presence::Required,
            ..SharedForm::plain(width)
        }
    }
}

/// The form of gate and up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharedGate {
    /// Gate and up have a tensor each.
    Separate,
    /// One tensor, named like up: the gate's rows, then up's rows.
    Fused,
}

/// The width of the shared expert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharedWidth {
    /// `expert_shared_feed_forward_length`; without it no shared expert.
    Given,
    /// `expert_shared_feed_forward_length` or else `feed_forward_length`.
    GivenOrDense,
    /// `expert_shared_feed_forward_length` or else an expert's width.
    GivenOrExpert,
    /// `expert_shared_count` times `expert_shared_feed_forward_length`, or else times an expert's width. No count: no
    /// shared expert.
    Counted,
    /// `expert_shared_feed_forward_length`, or else `expert_shared_count` times an expert's width. No count: no shared
    /// expert.
    GivenIfCounted,
    /// `expert_shared_feed_forward_length`, or else `expert_shared_count` (default 1) times an expert's width.
    GivenOrCounted,
    /// `expert_shared_count` times an expert's width. No count: no shared expert.
    CountedAsExpert,
    /// `expert_shared_count` (default 1) times an expert's width.
    CountedFromOne,
    /// An expert's width.
    AsExpert,
}
