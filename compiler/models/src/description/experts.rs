use super::norms::WeightPlace;
use super::presence::{KeyUse, Presence};

/// Experts of an architecture.
#[derive(Clone, Debug, PartialEq)]
pub enum Experts {
    /// Models do not have experts.
    None,
    /// Files with `expert_count` have experts.
    IfCounted(ExpertForm),
    /// Every file has experts.
    Always(ExpertForm),
}

impl Experts {
    /// Returns the form of the experts, if models have experts.
    pub const fn form(&self) -> Option<&ExpertForm> {
        match self {
            Experts::None => None,
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
    /// Layers with experts.
    pub layers: ExpertLayers,
    /// Width of an expert.
    pub width: ExpertWidth,
    /// Function from router logits to weights.
    pub gating: Gating,
    /// `expert_gating_func`, which overrides `gating`: 1 softmax, 2 sigmoid, 3 softmax of the selected, 4 root of a
    /// softplus.
    pub gating_key: KeyUse,
    /// Bias of the router.
    pub router_bias: Presence,
    /// The numbers that select experts.
    pub selected_by: SelectedBy,
    /// Bias that affects only the selection.
    pub selection_bias: Presence,
    /// Tensor of the selection bias.
    pub selection_tensor: &'static str,
    /// `hash_layer_count`: number of first layers in which each vocabulary token has fixed experts, `ffn_gate_tid2eid`,
    /// without a selection bias.
    pub by_token: KeyUse,
    /// Weights of a token's experts.
    pub weights: ExpertWeights,
    /// `expert_weights_scale`: factor on the weights.
    pub weights_scale: KeyUse,
    /// Side of the experts that the weights multiply.
    pub weighted: WeightedSide,
    /// Input of the experts.
    pub input: ExpertInput,
    /// Input of the router.
    pub router_input: RouterInput,
    /// Biases of the experts.
    pub bias: Presence,
    /// A latent vector that the selected experts read and write, instead of the residual stream.
    pub latent: Option<ExpertLatent>,
    /// `experts_per_group`: each group of this many experts has a group expert, `ffn_gate_chexps`, `ffn_up_chexps`,
    /// `ffn_down_chexps`. A selected expert selects its group's expert. Group experts read the selected experts'
    /// combined output and add `expert_group_scale` times their own. Group expert `g` takes the routing weight of
    /// expert `g`.
    pub groups: KeyUse,
    /// `ffn_down_exps.scale`: a factor on each expert's output.
    pub output_scale: Presence,
    /// Norm of the selected experts' output, before it is added to other outputs.
    pub norm: Option<&'static str>,
    /// Dense network in parallel with the experts, whose output is added.
    pub dense: Option<DenseBeside>,
    /// Shared expert.
    pub shared: Option<SharedForm>,
}

impl ExpertForm {
    /// The usual choices: experts in every layer, weighted by a softmax over all experts and divided by the sum of the
    /// selected weights.
    pub const CLASSIC: ExpertForm = ExpertForm {
        layers: ExpertLayers::All,
        width: ExpertWidth::GivenOrDense,
        gating: Gating::Softmax,
        gating_key: KeyUse::Ignored,
        router_bias: Presence::Absent,
        selected_by: SelectedBy::Weights,
        selection_bias: Presence::Absent,
        selection_tensor: "exp_probs_b.bias",
        by_token: KeyUse::Ignored,
        weights: ExpertWeights::SumToOne,
        weights_scale: KeyUse::Ignored,
        weighted: WeightedSide::Outputs,
        input: ExpertInput::Sublayer,
        router_input: RouterInput::Experts,
        bias: Presence::Absent,
        latent: None,
        groups: KeyUse::Ignored,
        output_scale: Presence::Absent,
        norm: None,
        dense: None,
        shared: None,
    };

    /// Mixtral's choices: experts have a dense network's width; `expert_feed_forward_length` is ignored.
    pub const MIXTRAL: ExpertForm = ExpertForm {
        width: ExpertWidth::AsDense,
        ..ExpertForm::CLASSIC
    };

    /// Choices of DeepSeek 2 and later: dense layers first, then routed and shared experts. Keys decide gating and
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

/// A latent vector between the residual stream and the experts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpertLatent {
    /// Key of the vector's length. If not [`Self::required`], a length of 0 means that there is no vector.
    pub length: &'static str,
    /// True if every model has the vector.
    pub required: bool,
    /// Projection to the vector.
    pub down: &'static str,
    /// Norm of the vector.
    pub norm: Option<&'static str>,
    /// Norm of each expert's output, with the place of its weight and the epsilon of the layer's output norms.
    pub each_norm: Option<(&'static str, WeightPlace)>,
    /// Norm of the experts' sum, if the file has it.
    pub sum_norm: Option<&'static str>,
    /// Projection from the experts' sum.
    pub up: &'static str,
}

/// The numbers whose highest select experts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SelectedBy {
    /// The gating's weights, plus the selection bias.
    Weights,
    /// The router's logits, plus the selection bias, without groups.
    Logits,
}

/// Input of the experts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpertInput {
    /// The sublayer's input.
    Sublayer,
    /// The layer's input, normalised by this tensor.
    Layer(&'static str),
    /// The sublayer's input before its norm, normalised by this tensor.
    Stream(&'static str),
}

/// Input of the router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouterInput {
    /// The experts' input.
    Experts,
    /// The layer's input, before its norm.
    Layer,
    /// The sublayer's input before its norm, normalised without a weight, divided by the root of its width, and times
    /// `ffn_gate_inp.scale`.
    ScaledStream,
}

/// A dense network in parallel with the experts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DenseBeside {
    /// Presence of the network, shown by `ffn_up`.
    pub presence: Presence,
    /// Norm of the network's output, before it is added.
    pub norm: Option<&'static str>,
    /// Factor on the sum of both outputs.
    pub scale: f32,
}

/// Width of an expert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpertWidth {
    /// `feed_forward_length`
    AsDense,
    /// `expert_feed_forward_length`, or else `feed_forward_length`.
    GivenOrDense,
    /// `expert_feed_forward_length`, or else an equal share of `feed_forward_length`, the total width of a token's
    /// experts.
    GivenOrShareOfDense,
}

/// Layers with experts; other layers have one dense network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpertLayers {
    /// All layers.
    All,
    /// All layers but the first `leading_dense_block_count`.
    AfterLeading,
    /// After the first `leading_dense_block_count` layers, the last of every `interleave_moe_layer_step`.
    Interleaved,
    /// Same as [`Self::Interleaved`], but all dense if `interleave_moe_layer_step` is 0.
    InterleavedUnless0,
    /// The second of every `moe_every_n_layers`; no layers if this is 0 or 1.
    SecondOfEvery,
    /// Layers with a router in the file.
    WithRouter,
}

/// Function from router logits to weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gating {
    /// Softmax over all experts.
    Softmax,
    /// Softmax over the experts selected by their logits.
    SoftmaxOfSelected,
    /// Sigmoid of each logit.
    Sigmoid,
    /// Root of each logit's softplus.
    RootSoftplus,
}

/// Weights of a token's experts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpertWeights {
    /// The gating's weights.
    AsGiven,
    /// The gating's weights, divided by their sum.
    SumToOne,
    /// [`Self::SumToOne`] if `expert_weights_norm` is true, else [`Self::AsGiven`].
    ByKey,
}

/// Side of the experts that the weights multiply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WeightedSide {
    /// Outputs of the experts.
    Outputs,
    /// Inputs of the experts.
    Inputs,
}

/// The shared expert, a network for every token, whose output is added to the selected experts': `ffn_gate_shexp`,
/// `ffn_up_shexp`, `ffn_down_shexp`.
#[derive(Clone, Debug, PartialEq)]
pub struct SharedForm {
    /// Width of the shared expert.
    pub width: SharedWidth,
    /// Usual form of gate and up. tpc reads both forms.
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

/// Form of gate and up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharedGate {
    /// A tensor each for gate and up.
    Separate,
    /// One tensor, named like up: the gate's rows, then up's rows.
    Fused,
}

/// Width of the shared expert. Without the named count, models do not have a shared expert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharedWidth {
    /// `expert_shared_feed_forward_length`; without it no shared expert.
    Given,
    /// `expert_shared_feed_forward_length`, or else `feed_forward_length`.
    GivenOrDense,
    /// `expert_shared_feed_forward_length`, or else an expert's width.
    GivenOrExpert,
    /// `expert_shared_count` times `expert_shared_feed_forward_length`, or else times an expert's width.
    Counted,
    /// `expert_shared_feed_forward_length`, or else `expert_shared_count` times an expert's width.
    GivenIfCounted,
    /// `expert_shared_feed_forward_length`, or else `expert_shared_count` (default 1) times an expert's width.
    GivenOrCounted,
    /// `expert_shared_count` times an expert's width.
    CountedAsExpert,
    /// `expert_shared_count` (default 1) times an expert's width.
    CountedFromOne,
    /// An expert's width.
    AsExpert,
}
