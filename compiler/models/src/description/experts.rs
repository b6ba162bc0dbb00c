//! Mixtures of experts.

use super::presence::{KeyUse, Presence};

/// The experts of an architecture.
#[derive(Clone, Debug, PartialEq)]
pub enum Experts {
    /// No model has experts.
    None,
    /// Models with experts exist and are not described: a file with `expert_count` is refused.
    Unsupported,
    /// Files with `expert_count` have experts.
    IfCounted(ExpertForm),
    /// Every file has experts.
    Always(ExpertForm),
}

impl Experts {
    /// Returns the form of the experts, if some model has them.
    pub const fn form(&self) -> Option<&ExpertForm> {
        match self {
            Experts::None | Experts::Unsupported => None,
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
    /// Use of `expert_gating_func`, which overrides it: 1 for a softmax, 2 for a sigmoid, 3 for a softmax of the
    /// selected, 4 for the root of a softplus.
    pub gating_key: KeyUse,
    /// Bias of the router.
    pub router_bias: Presence,
    /// A bias added to the weights for the selection alone.
    pub selection_bias: Presence,
    /// Its tensor.
    pub selection_tensor: &'static str,
    /// Use of `hash_layer_count`. In this number of first layers each token of the vocabulary has fixed experts:
    /// `ffn_gate_tid2eid`, without a bias for the selection.
    pub by_token: KeyUse,
    /// The weights of a token's experts.
    pub weights: ExpertWeights,
    /// Use of `expert_weights_scale`, a factor on the weights.
    pub weights_scale: KeyUse,
    /// The side of the experts that is multiplied by their weights.
    pub weighted: WeightedSide,
    /// The input of the experts.
    pub input: ExpertInput,
    /// The input of the router.
    pub router_input: RouterInput,
    /// Biases of the experts.
    pub bias: Presence,
    /// Use of `expert_latent_length`. If it is present and not 0, the selected experts read and write a latent vector
    /// of this length: `ffn_routed_down`, `ffn_routed_norm`, `ffn_routed_up`.
    pub latent: KeyUse,
    /// Use of `experts_per_group`: each group of this many experts has a further expert, `ffn_gate_chexps`,
    /// `ffn_up_chexps`, `ffn_down_chexps`. Each selected expert selects the further expert of its group. The further
    /// experts read the combined output of the selected experts and add `expert_group_scale` times their own output.
    /// Further expert `g` takes the routing weight of expert `g`.
    pub groups: KeyUse,
    /// A dense network in parallel with the experts, whose output is added to theirs.
    pub dense: Option<DenseBeside>,
    /// The shared expert.
    pub shared: Option<SharedForm>,
}

impl ExpertForm {
    /// The usual choices: experts in every layer, weighted by a softmax over all experts. The weights are divided by
    /// the sum of the selected ones.
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

    /// The widths of Mixtral: experts have the width of a dense network. `expert_feed_forward_length` is ignored.
    pub const MIXTRAL: ExpertForm = ExpertForm {
        width: ExpertWidth::AsDense,
        ..ExpertForm::CLASSIC
    };

    /// The choices of DeepSeek 2 and 3, which later models adopted. Dense layers come first, then layers with routed
    /// and shared experts. Keys decide the gating and the weights.
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

/// The input of the experts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpertInput {
    /// The input of the sublayer.
    Sublayer,
    /// The layer's input, normalised by this tensor.
    Layer(&'static str),
}

/// The input of the router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouterInput {
    /// The input of the experts.
    Experts,
    /// The layer's input, before its norm.
    Layer,
}

/// A dense network in parallel with the experts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DenseBeside {
    /// Presence of the network, as shown by `ffn_up`.
    pub presence: Presence,
    /// Factor on the sum of both.
    pub scale: f32,
}

/// The width of an expert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpertWidth {
    /// `feed_forward_length`
    AsDense,
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
    /// As [`Self::Interleaved`], but all layers are dense if `interleave_moe_layer_step` is 0.
    InterleavedUnless0,
    /// The layers with a router in the file.
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
    /// The root of the softplus of each expert's logit.
    RootSoftplus,
}

/// The weights of a token's experts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpertWeights {
    /// The weights of the gating.
    AsGiven,
    /// The weights of the gating, divided by their sum.
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
/// added to the output of the selected experts.
#[derive(Clone, Debug, PartialEq)]
pub struct SharedForm {
    /// Its width.
    pub width: SharedWidth,
    /// The usual form of its gate and up. Either form is read.
    pub gate_up: SharedGate,
    /// Factor on the sum of the shared and the routed output.
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
    /// A tensor each.
    Separate,
    /// In the tensor of up: the rows of the gate, then the rows of up.
    Fused,
}

/// The width of the shared expert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharedWidth {
    /// `expert_shared_feed_forward_length`. Without that key the model does not have a shared expert.
    Given,
    /// `expert_shared_feed_forward_length` or else `feed_forward_length`.
    GivenOrDense,
    /// `expert_shared_feed_forward_length` or else the width of an expert.
    GivenOrExpert,
    /// `expert_shared_count` times `expert_shared_feed_forward_length`, or times the width of an expert without that
    /// key. Without a count the model does not have a shared expert.
    Counted,
    /// `expert_shared_feed_forward_length`, or without that key `expert_shared_count` times the width of an expert.
    /// Without a count the model does not have a shared expert.
    GivenIfCounted,
    /// `expert_shared_feed_forward_length` or else `expert_shared_count`, which is 1 without that key, times the width of
    /// an expert.
    GivenOrCounted,
    /// `expert_shared_count` times the width of an expert. Without a count the model does not have a shared expert.
    CountedAsExpert,
    /// `expert_shared_count`, which is 1 without that key, times the width of an expert.
    CountedFromOne,
    /// The width of an expert.
    AsExpert,
}
