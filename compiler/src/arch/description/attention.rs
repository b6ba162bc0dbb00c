//! The attention half of a block.

use super::rope::RopeForm;
use super::{KeyUse, Presence};

/// The attention half of a block.
#[derive(Clone, Debug, PartialEq)]
pub struct AttentionForm {
    /// How the files usually hold the projections to queries, keys and values.
    pub qkv: QkvForm,
    /// Biases of those projections.
    pub qkv_bias: Presence,
    /// Bias of the output projection.
    pub out_bias: Presence,
    /// Normalisation of queries and keys, before the rotation.
    pub qk_norm: QkNorm,
    /// Rotary position embedding.
    pub rope: Option<RopeForm>,
    /// Factor on the dot products where no key gives one.
    pub scale: ScaleRule,
    /// Where that factor is applied.
    pub scale_on: ScaleOn,
    /// Whether `attn_logit_softcapping` bounds the logits.
    pub softcap: KeyUse,
    /// Which layers attend to a sliding window only.
    pub window: Window,
    /// `attn_sinks`, a logit per head that takes weight but adds nothing.
    pub sinks: Presence,
}

/// How projections to queries, keys and values are held. Either form is read; this one is expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QkvForm {
    /// `attn_q`, `attn_k`, `attn_v`
    Separate,
    /// `attn_qkv`, whose rows are those of the three one after another.
    Fused,
}

/// Normalisation of queries and keys by `attn_q_norm` and `attn_k_norm`, of the kind of the block's other norms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QkNorm {
    /// None.
    None,
    /// Each head by itself; all heads share one weight `[head size]`.
    Head,
    /// Each head by itself with its own weight, `[head size, heads]`; only if the file has them.
    OptionalHeads,
    /// All heads together, before they are told apart; weight `[head size · heads]`.
    All,
}

/// Factor on the dot products where `attention.scale` is absent or 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScaleRule {
    /// `1 / √head size`
    Head,
    /// As [`Self::Head`], except that models of this many layers have `1 / √(embedding_length / heads)`.
    WidthAtLayers(u32),
}

/// Where the factor on the dot products is applied. The product is the same, its rounding is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScaleOn {
    /// On the logits, by the attention op.
    Logits,
    /// On the rotated queries.
    Queries,
}

/// Which layers attend to a sliding window of `attention.sliding_window` tokens, where that key is present and not 0.
/// `attention.sliding_window_pattern` overrides the period, or lists the layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// None; the key is ignored.
    None,
    /// All.
    All,
    /// All but the last of every so many.
    AllButEvery(u32),
}
