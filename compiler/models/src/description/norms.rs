//! Norms: their kind, where a block has them, and how its halves join the residual stream.

use tpc_ir::op::NormKind;

use super::Presence;

/// A normalisation with learned weights.
#[derive(Clone, Debug, PartialEq)]
pub struct NormForm {
    /// The statistic; it also decides which key holds epsilon.
    pub kind: NormKind,
    /// A bias after the weight.
    pub bias: Presence,
}

/// Where a block normalises: the tensor's stem (`attn_norm`) at each place that it does.
#[derive(Clone, Debug, PartialEq)]
pub struct BlockNorms {
    /// The input of what mixes tokens, and of the only half of blocks that have one.
    pub pre_attention: Option<&'static str>,
    /// The input of attention in layers that have this tensor too; the former is then that of the feed-forward half
    /// alone. For halves side by side.
    pub own_attention: Option<&'static str>,
    /// The output of attention, before it joins the residual stream.
    pub post_attention: Option<&'static str>,
    /// The input of the feed-forward half. Without one it reads the residual stream, or with [`Residual::Parallel`]
    /// what attention reads.
    pub pre_ffn: Option<&'static str>,
    /// The output of the feed-forward half, before it joins the residual stream.
    pub post_ffn: Option<&'static str>,
}

impl BlockNorms {
    /// Both halves normalise their input.
    pub const PRE: BlockNorms = BlockNorms {
        pre_attention: Some("attn_norm"),
        own_attention: None,
        post_attention: None,
        pre_ffn: Some("ffn_norm"),
        post_ffn: None,
    };
    /// Both halves normalise their output.
    pub const POST: BlockNorms = BlockNorms {
        pre_attention: None,
        own_attention: None,
        post_attention: Some("post_attention_norm"),
        pre_ffn: None,
        post_ffn: Some("post_ffw_norm"),
    };
    /// Both halves normalise input and output.
    pub const SANDWICH: BlockNorms = BlockNorms {
        post_attention: BlockNorms::POST.post_attention,
        post_ffn: BlockNorms::POST.post_ffn,
        ..BlockNorms::PRE
    };
    /// One normalised input for both halves, side by side.
    pub const SHARED: BlockNorms = BlockNorms {
        pre_ffn: None,
        ..BlockNorms::PRE
    };
}

/// Factor on what joins the residual stream.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ResidualScale {
    /// None.
    One,
    /// `residual_scale`, where present and not 0.
    Key,
    /// This divided by the root of `block_count`.
    OverRootOfDepth(f32),
}

/// How a block's two halves join the residual stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Residual {
    /// The feed-forward half reads the sum of the block's input and attention.
    Sequential,
    /// Both halves read the block's input, and their outputs are added to it together.
    Parallel,
    /// As `use_parallel_residual` says.
    ByKey,
    /// [`Self::Sequential`] in layers that have a norm before the feed-forward half, else [`Self::Parallel`].
    ByFfnNorm,
}
