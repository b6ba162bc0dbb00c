//! The attention half of a block.

use super::models::Models;
use super::presence::{KeyUse, Presence};
use super::rope::RopeForm;

/// The attention half of a block.
#[derive(Clone, Debug, PartialEq)]
pub struct AttentionForm {
    /// How the files usually hold the projections to queries, keys and values.
    pub qkv: QkvForm,
    /// Biases of those projections.
    pub qkv_bias: Presence,
    /// Whether `attention.clamp_kqv` bounds the elements of what is projected.
    pub clamp: KeyUse,
    /// The source of values.
    pub value_source: ValueSource,
    /// Normalisation of values.
    pub value_norm: ValueNorm,
    /// Whether the last `attention.shared_kv_layers` layers attend to what the last layer of their kind before them
    /// has cached: of those with a window, or of those without.
    pub shared_kv: KeyUse,
    /// A factor on queries that grows with the position.
    pub temperature: TemperatureForm,
    /// Bias of the output projection.
    pub out_bias: Presence,
    /// Whether `attention.value_scale` multiplies the output.
    pub value_scale: KeyUse,
    /// Whether all layers have heads of one size.
    pub head_sizes: HeadSizes,
    /// Normalisation of queries and keys.
    pub qk_norm: QkNorm,
    /// Whether queries and keys are normalised before they are rotated.
    pub qk_norm_order: QkNormOrder,
    /// Rotary position embedding.
    pub rope: Option<RopeForm>,
    /// A bias on the logits that grows with the distance.
    pub alibi: Alibi,
    /// Factor on the dot products where no key gives one.
    pub scale: ScaleRule,
    /// Where that factor is applied.
    pub scale_on: ScaleOn,
    /// Whether `attn_logit_softcapping` bounds the logits.
    pub softcap: KeyUse,
    /// Which layers attend to a sliding window only.
    pub window: Window,
    /// How far the window of such a layer reaches.
    pub window_kind: WindowKind,
    /// Which models have such layers.
    pub window_in: Models,
    /// Tokens of the window where `attention.sliding_window` is absent or 0.
    pub window_default: Option<u64>,
    /// `attn_sinks`, a logit per head that takes weight but adds nothing.
    pub sinks: Presence,
    /// What the output is multiplied by before its projection.
    pub out_gate: OutGate,
    /// Whether keys and values are made of a latent vector (multi-head latent attention). Choices that concern their
    /// projection have no meaning then.
    pub latent: Option<LatentForm>,
}

/// How the projections from the latent vector to keys and values are held. Either form is read; this one is expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LatentForm {
    /// `attn_k_b` and `attn_v_b`, head by head: queries are brought to the latent vector, which is all that is cached.
    Absorbed,
    /// `attn_kv_b`: keys and values are made of the latent vector and cached.
    Expanded,
}

/// What the output of attention is multiplied by before its projection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutGate {
    /// Nothing.
    None,
    /// The sigmoid of a gate that `attn_q` holds: head by head its query and then its gate.
    WithQueries,
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
    /// As [`Self::Head`], if the file has the weights.
    OptionalHead,
    /// Each head by itself with its own weight, `[head size, heads]`; only if the file has them.
    OptionalHeads,
    /// All heads together, before they are told apart; weight `[head size · heads]`.
    All,
    /// As [`Self::All`], if the file has the norm of queries, and with the biases that it has.
    OptionalAll,
    /// Each head by itself without weight, in layers that rotate. Models with so many experts have none.
    UnweightedUnlessExperts(u64),
}

/// Whether queries and keys are normalised before they are rotated. Norms over all heads always are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QkNormOrder {
    /// Norm, then rotation.
    NormFirst,
    /// Rotation, then norm.
    RotationFirst,
}

/// The source of a layer's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueSource {
    /// A projection of its own.
    Projected,
    /// In layers without `attn_v`, what is projected to keys, before it is normalised or rotated.
    ProjectedOrKeys,
}

/// Normalisation of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueNorm {
    /// None.
    None,
    /// Each head by itself, without weights.
    Head,
}

/// Whether all layers have heads of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadSizes {
    /// All have `attention.key_length` and `attention.value_length`.
    Same,
    /// Layers with a window have `attention.key_length_swa`, `attention.value_length_swa` and
    /// `rope.dimension_count_swa`.
    WindowedOwn,
}

/// A factor on queries that grows with the position.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TemperatureForm {
    /// None.
    None,
    /// By `attention.temperature_scale`, where present and not 0, whenever the context of training is passed once more.
    PerContext,
    /// The same whenever `attention.temperature_length` is, where that is present and not 0.
    PerLength,
    /// In layers that do not rotate, by `scale` whenever so many tokens are passed once more.
    Unrotated {
        /// How much it grows.
        scale: f32,
        /// Tokens after which it grows.
        length: u64,
    },
}

/// ALiBi: the distance to a token, times a slope that each head has of its own, is taken from its logit. The gentlest
/// slope is `2^-bias`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Alibi {
    /// None.
    None,
    /// That of `attention.max_alibi_bias`, where present and not 0.
    Key,
    /// As [`Self::Key`], and in these models this where the key gives none.
    In(Models, f32),
}

/// Factor on the dot products where `attention.scale` is absent or 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScaleRule {
    /// `1 / √head size`
    Head,
    /// As [`Self::Head`], except that these models have `1 / √(embedding_length / heads)`.
    WidthIn(Models),
    /// 1
    One,
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
    /// Those that `attention.sliding_window_pattern` lists, none without it.
    Listed,
}

/// How far the window of a layer reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowKind {
    /// Over the last `attention.sliding_window` tokens.
    Sliding,
    /// Over the chunk of so many tokens that the token is in; of the key it only counts whether it is 0.
    Chunks(u64),
}
