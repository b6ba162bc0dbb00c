//! Norms: their kind, their places in a layer, and how sublayers join the residual stream.

use tpc_ir::op::NormKind;

use super::hyper::HyperForm;
use super::presence::{KeyUse, Presence};

/// A normalisation.
#[derive(Clone, Debug, PartialEq)]
pub struct NormForm {
    /// The statistic. It also decides which key holds epsilon.
    pub kind: NormKind,
    /// Use of `attention.layer_norm_rms_epsilon`, which makes them RMS norms.
    pub rms: KeyUse,
    /// A learned weight.
    pub weight: Presence,
    /// A bias after the weight.
    pub bias: Presence,
}

impl NormForm {
    /// Layer norms with a bias.
    pub const LAYER: NormForm = NormForm {
        kind: NormKind::Layer,
        rms: KeyUse::Ignored,
        weight: Presence::Required,
        bias: Presence::Required,
    };
}

/// The norms of a layer, each by the name of its tensor within the layer (`attn_norm`). `None` means no norm.
#[derive(Clone, Debug, PartialEq)]
pub struct BlockNorms {
    /// On the input of the token mixer, or of the only sublayer.
    pub pre_attention: Option<&'static str>,
    /// On the input of attention in layers that have this tensor too; [`Self::pre_attention`] is then on the input of
    /// the feed-forward sublayer alone. For [`Residual::Parallel`].
    pub own_attention: Option<&'static str>,
    /// On the output of attention, before it joins the residual stream.
    pub post_attention: Option<&'static str>,
    /// On the input of the feed-forward sublayer. Without it that sublayer reads the residual stream, or with
    /// [`Residual::Parallel`] the input of attention.
    pub pre_ffn: Option<&'static str>,
    /// On the output of the feed-forward sublayer, before it joins the residual stream.
    pub post_ffn: Option<&'static str>,
    /// Epsilon of the norms on outputs, if it is not the model's.
    pub post_eps: Option<f32>,
    /// The tensor of the norm on the output of the feed-forward sublayer in files without [`Self::post_ffn`].
    pub post_ffn_or: Option<&'static str>,
    /// The norms whose tensors usually lack the part `weight` of their names. Either name is read.
    pub bare: &'static [&'static str],
}

impl BlockNorms {
    /// No norms.
    pub const NONE: BlockNorms = BlockNorms {
        pre_attention: None,
        pre_ffn: None,
        ..BlockNorms::PRE
    };
    /// A norm on the input of both sublayers.
    pub const PRE: BlockNorms = BlockNorms {
        pre_attention: Some("attn_norm"),
        own_attention: None,
        post_attention: None,
        pre_ffn: Some("ffn_norm"),
        post_ffn: None,
        post_eps: None,
        post_ffn_or: None,
        bare: &[],
    };
    /// As [`Self::PRE`], in files that call the norm on the input of the feed-forward sublayer one after attention.
    pub const PRE_AS_POST: BlockNorms = BlockNorms {
        pre_ffn: Some("post_attention_norm"),
        ..BlockNorms::PRE
    };
    /// A norm on the output of both sublayers.
    pub const POST: BlockNorms = BlockNorms {
        pre_attention: None,
        own_attention: None,
        post_attention: Some("post_attention_norm"),
        pre_ffn: None,
        post_ffn: Some("post_ffw_norm"),
        post_eps: None,
        post_ffn_or: None,
        bare: &[],
    };
    /// Norms on input and output of both sublayers.
    pub const SANDWICH: BlockNorms = BlockNorms {
        post_attention: BlockNorms::POST.post_attention,
        post_ffn: BlockNorms::POST.post_ffn,
        ..BlockNorms::PRE
    };
    /// One norm on the common input of both sublayers, for [`Residual::Parallel`].
    pub const SHARED: BlockNorms = BlockNorms {
        pre_ffn: None,
        ..BlockNorms::PRE
    };
}

/// Factor on the output of a sublayer, before it joins the residual stream.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ResidualScale {
    /// No factor.
    One,
    /// `residual_scale`, if present and not 0.
    Key,
    /// This number divided by the root of `block_count`.
    OverRootOfDepth(f32),
    /// `residual_scale`, or without that key this number divided by the root of `block_count`. 0 means no factor.
    KeyOrOverRootOfDepth(f32),
}

/// The connection of a layer's two sublayers and the residual stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Residual {
    /// The feed-forward sublayer reads the sum of the layer's input and attention's output.
    Sequential,
    /// As [`Self::Sequential`], but the output of a sublayer is added to its normalised input. The factor on sublayers
    /// applies to that input instead.
    FromNorms,
    /// Every `attn_res.block_size` layers the residual stream is kept and restarts with the output of the mixer. A
    /// sublayer, and the output, read a mixture of the kept streams and the current one. The weights are a softmax of
    /// the scores that `attn_res_score`, `ffn_res_score` and `output_res_score` give their norms. Without the key it is
    /// [`Self::Sequential`].
    AttentionResiduals,
    /// `hyper_connection.count` residual streams side by side, which begin as the embedding.
    Hyper(HyperForm),
    /// Both sublayers read the layer's input, and both outputs are added to it.
    Parallel,
    /// [`Self::Parallel`] if `use_parallel_residual` is true, else [`Self::Sequential`].
    ByKey,
    /// [`Self::Sequential`] in layers with a norm on the input of the feed-forward sublayer, else [`Self::Parallel`].
    ByFfnNorm,
}
