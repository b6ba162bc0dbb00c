use tpc_ir::op::NormKind;

use super::hyper::HyperForm;
use super::presence::{KeyUse, Presence};

/// Kind and tensors of a normalisation.
#[derive(Clone, Debug, PartialEq)]
pub struct NormForm {
    /// Statistic, which also decides the key of epsilon.
    pub kind: NormKind,
    /// `attention.layer_norm_rms_epsilon`, whose presence makes the norms RMS norms.
    pub rms: KeyUse,
    /// `attention.group_norm_groups`: number of equal parts of the residual stream that are normalised separately.
    pub groups: KeyUse,
    /// Learned weight.
    pub weight: Presence,
    /// Bias after the weight.
    pub bias: Presence,
}

impl NormForm {
    /// Layer norms with a bias.
    pub const LAYER: NormForm = NormForm {
        kind: NormKind::Layer,
        rms: KeyUse::Ignored,
        groups: KeyUse::Ignored,
        weight: Presence::Required,
        bias: Presence::Required,
    };
}

/// A layer's norms, each by its tensor name within the layer (`attn_norm`), or `None`.
#[derive(Clone, Debug, PartialEq)]
pub struct BlockNorms {
    /// Norm of the input of the token mixer, or of the only sublayer.
    pub pre_attention: Option<&'static str>,
    /// Norm of attention's input in layers that also have this tensor. [`Self::pre_attention`] then applies only to the
    /// feed-forward input. For [`Residual::Parallel`].
    pub own_attention: Option<&'static str>,
    /// True if the first layer may lack [`Self::pre_attention`], whose input then stays as it is.
    pub first_optional: bool,
    /// Norm of attention's output, before the residual sum. With [`Residual::Normalised`], after the sum.
    pub post_attention: Option<&'static str>,
    /// Norm of the sum of the layer's input and its first normalised sum, in layers with this tensor. For
    /// [`Residual::Normalised`].
    pub again_attention: Option<&'static str>,
    /// Norm of the feed-forward input. Without it, the feed-forward sublayer reads the residual stream, or with
    /// [`Residual::Parallel`] attention's input.
    pub pre_ffn: Option<&'static str>,
    /// Norm of the feed-forward output, before the residual sum. With [`Residual::Normalised`], after the sum.
    pub post_ffn: Option<&'static str>,
    /// True if attention's output has a norm without weight. [`Self::post_attention`] is then ignored.
    pub post_attention_plain: bool,
    /// Presence of the output norms. If optional, a layer has both or neither.
    pub post: Presence,
    /// Place of the weight of [`Self::post_ffn`].
    pub post_ffn_weight: WeightPlace,
    /// Epsilon of the output norms.
    pub post_eps: PostEps,
    /// `swin_norm`: if true, [`Self::pre_attention`] and [`Self::pre_ffn`] normalise the outputs of their sublayers. As
    /// in llama.cpp, the feed-forward network then reads attention's normalised output.
    pub swin: KeyUse,
    /// Norm tensor of the feed-forward output in files without [`Self::post_ffn`].
    pub post_ffn_or: Option<&'static str>,
    /// Norms whose tensor names usually lack `weight`. tpc reads both names.
    pub bare: &'static [&'static str],
}

impl BlockNorms {
    /// No norms.
    pub const NONE: BlockNorms = BlockNorms {
        pre_attention: None,
        pre_ffn: None,
        ..BlockNorms::PRE
    };
    /// Norms of the inputs of both sublayers.
    pub const PRE: BlockNorms = BlockNorms {
        pre_attention: Some("attn_norm"),
        own_attention: None,
        first_optional: false,
        post_attention: None,
        again_attention: None,
        pre_ffn: Some("ffn_norm"),
        post_ffn: None,
        post_attention_plain: false,
        post: Presence::Required,
        post_ffn_weight: WeightPlace::Result,
        post_eps: PostEps::Model,
        swin: KeyUse::Ignored,
        post_ffn_or: None,
        bare: &[],
    };
    /// Same as [`Self::PRE`], for files that name the feed-forward input norm as a norm after attention.
    pub const PRE_AS_POST: BlockNorms = BlockNorms {
        pre_ffn: Some("post_attention_norm"),
        ..BlockNorms::PRE
    };
    /// Norms of the outputs of both sublayers.
    pub const POST: BlockNorms = BlockNorms {
        pre_attention: None,
        post_attention: Some("post_attention_norm"),
        again_attention: None,
        pre_ffn: None,
        post_ffn: Some("post_ffw_norm"),
        ..BlockNorms::PRE
    };
    /// Norms of inputs and outputs of both sublayers.
    pub const SANDWICH: BlockNorms = BlockNorms {
        post_attention: BlockNorms::POST.post_attention,
        post_ffn: BlockNorms::POST.post_ffn,
        ..BlockNorms::PRE
    };
    /// One norm of both sublayers' common input, for [`Residual::Parallel`].
    pub const SHARED: BlockNorms = BlockNorms {
        pre_ffn: None,
        ..BlockNorms::PRE
    };
}

/// Epsilon of output norms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PostEps {
    /// The model's epsilon.
    Model,
    /// A fixed number.
    Fixed(f32),
    /// `post_norm_epsilon`
    Key,
}

/// The side of a norm that its weight multiplies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WeightPlace {
    /// The norm's result.
    Result,
    /// The norm's input.
    Input,
}

/// The sum of a sublayer's input `x` and output `y`, with [`Residual::Sequential`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResidualSum {
    /// `x + y`
    Plain,
    /// `a x + b y` with a number per element: `attn_resid_alpha` and `attn_resid_beta` after attention,
    /// `ffn_resid_alpha` and `ffn_resid_beta` after the feed-forward network.
    ByElement,
    /// `√((n - 1) / n) x + √(1 / n) y` after sublayer `n - 1`, counted from 1.
    ByDepth,
    /// `a x + y` with one number: `attn_resid_scale` after attention, `ffn_resid_scale` after the feed-forward network.
    Kept,
}

/// Factor on a sublayer's output, before the residual sum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ResidualScale {
    /// No factor.
    One,
    /// `residual_scale` (0: off).
    Key,
    /// This number divided by the square root of `block_count`.
    OverRootOfDepth(f32),
    /// `residual_scale` (0: off), by default this number divided by the square root of `block_count`.
    KeyOrOverRootOfDepth(f32),
}

/// Connection of a layer's sublayers with the residual stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Residual {
    /// The feed-forward sublayer reads the layer's input plus attention's output.
    Sequential,
    /// Same as [`Self::Sequential`], but a sublayer's output is added to its normalised input. The sublayer factor
    /// multiplies this input, not the output.
    FromNorms,
    /// The norms of outputs normalise sums: a sublayer reads the last sum, and its output is added to its input.
    Normalised,
    /// Every `attn_res.block_size` layers, the residual stream is kept and restarts with the mixer's output. Sublayers
    /// and the output read a mixture of kept and current streams. The weights are a softmax of the scores that
    /// `attn_res_score`, `ffn_res_score` and `output_res_score` give the streams' norms. Without the key:
    /// [`Self::Sequential`].
    AttentionResiduals,
    /// `hyper_connection.count` parallel residual streams, which begin as the embedding.
    Hyper(HyperForm),
    /// Both sublayers read the layer's input. Both outputs are added to the input.
    Parallel,
    /// [`Self::Parallel`] if `use_parallel_residual` is true, else [`Self::Sequential`].
    ByKey,
    /// [`Self::Sequential`] in layers with a feed-forward input norm, else [`Self::Parallel`].
    ByFfnNorm,
}
