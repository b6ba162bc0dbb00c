//! Attention.

use tpc_ir::op::UnaryKind;

use super::compressed::CompressedForm;
use super::indexer::IndexerForm;
use super::models::Models;
use super::presence::{KeyUse, Presence};
use super::rope::RopeForm;

/// The attention of a layer.
#[derive(Clone, Debug, PartialEq)]
pub struct AttentionForm {
    /// The tokens that a token attends to.
    pub direction: Direction,
    /// The usual form of the projections to queries, keys and values.
    pub qkv: QkvForm,
    /// Biases of the projections to queries, keys and values.
    pub qkv_bias: Presence,
    /// Use of `attention.clamp_kqv`, the bound on the elements of queries, keys and values.
    pub clamp: KeyUse,
    /// The source of values.
    pub value_source: ValueSource,
    /// Normalisation of values.
    pub value_norm: ValueNorm,
    /// Use of `attention.shared_kv_layers`: this number of last layers read another layer's caches. Each reads the
    /// caches of the last earlier layer of its kind, with or without a window.
    pub shared_kv: KeyUse,
    /// Factor on queries that grows with the position.
    pub temperature: TemperatureForm,
    /// Bias of the output projection.
    pub out_bias: Presence,
    /// Use of `attention.value_scale`, a factor on the output.
    pub value_scale: KeyUse,
    /// The size of heads in each layer.
    pub head_sizes: HeadSizes,
    /// Normalisation of queries and keys.
    pub qk_norm: QkNorm,
    /// The order of normalisation and rotation of queries and keys.
    pub qk_norm_order: QkNormOrder,
    /// Rotary position embedding.
    pub rope: Option<RopeForm>,
    /// Bias on the logits that grows with the distance.
    pub alibi: Alibi,
    /// Factor on the dot products if no key gives one.
    pub scale: ScaleRule,
    /// The place of that factor.
    pub scale_on: ScaleOn,
    /// Use of `attn_logit_softcapping`, the bound of the logits.
    pub softcap: KeyUse,
    /// The layers with a window.
    pub window: Window,
    /// The kind of window.
    pub window_kind: WindowKind,
    /// The models with windows.
    pub window_in: Models,
    /// Tokens of the window if `attention.sliding_window` is absent or 0.
    pub window_default: Option<u64>,
    /// `attn_sinks`: a logit per head. It takes part in the softmax, but does not have a value.
    pub sinks: Presence,
    /// Factor on the output before its projection.
    pub out_gate: OutGate,
    /// Multi-head latent attention, which computes keys and values from a latent vector. The choices for key and value
    /// projections are then ignored.
    pub latent: Option<LatentForm>,
    /// `attn_k_norm`, a norm of the rotated part of keys before its rotation, of latent attention.
    pub latent_key_norm: Presence,
    /// Attention to rows that are both keys and values, of tokens and of blocks of tokens. The choices for projections
    /// are then ignored.
    pub compressed: Option<CompressedForm>,
    /// The indexer. It is used in layers with latent attention and no window, or in layers with blocks that it selects.
    pub indexer: Option<IndexerForm>,
}

/// The usual form of the projections from the latent vector to keys and values. Either form is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LatentForm {
    /// `attn_k_b` and `attn_v_b`, a matrix per head: queries are multiplied by the former, and the cache holds latent
    /// vectors.
    Absorbed,
    /// `attn_kv_b`: the cache holds the keys and values of all heads.
    Expanded,
}

/// Factor on the output of attention before its projection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutGate {
    /// No gate.
    None,
    /// The sigmoid of a gate. `attn_q` projects to it too: for each head the query and then the gate.
    WithQueries,
    /// A function of `attn_gate`'s product with the layer's normalised input, in layers that have the tensor.
    Projected(UnaryKind, GateWidth, Presence),
}

/// The numbers of a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateWidth {
    /// One per element.
    Elements,
    /// One per head.
    Heads,
    /// One per head or one per element, by the size of the tensor; usually one per head.
    HeadsOrElements,
}

/// The tokens of its sequence that a token attends to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The tokens up to itself.
    Causal,
    /// All tokens, including later ones, as in models that generate by diffusion. These models do not have caches: a
    /// batch holds whole sequences.
    Bidirectional,
}

/// The usual form of the projections to queries, keys and values. Either form is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QkvForm {
    /// `attn_q`, `attn_k`, `attn_v`
    Separate,
    /// `attn_qkv`: the rows of queries, then keys, then values.
    Fused,
    /// `attn_qkv`, with three times the rows of queries. Keys start at row `embedding_length`, values at twice that
    /// row.
    FusedThirds,
}

/// Normalisation of queries and keys by `attn_q_norm` and `attn_k_norm`, of the kind of the other norms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QkNorm {
    /// No norm.
    None,
    /// Each head by itself. All heads share one weight `[head size]`.
    Head,
    /// As [`Self::Head`], if the file has the weights.
    OptionalHead,
    /// Each head by itself, with a weight of its own, `[head size, heads]`, if the file has the weights.
    OptionalHeads,
    /// All heads together. Weight `[head size · heads]`.
    All,
    /// As [`Self::All`], if the file has the norm of queries, with optional biases.
    OptionalAll,
    /// Each head by itself: queries with one number per head, `[1, heads]`, keys without weight.
    QueriesByHead,
    /// Each head by itself without weight, in layers that rotate. Models with this number of experts do not normalise.
    UnweightedUnlessExperts(u64),
}

/// The order of normalisation and rotation of queries and keys. Norms over all heads always come first.
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
    /// A projection of their own.
    Projected,
    /// In layers without `attn_v` the projection to keys, neither normalised nor rotated.
    ProjectedOrKeys,
}

/// Normalisation of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueNorm {
    /// No norm.
    None,
    /// Each head by itself, without weight.
    Head,
}

/// The size of heads in each layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadSizes {
    /// `attention.key_length` and `attention.value_length` in all. If the first layer has a window, rather
    /// `attention.key_length_swa`, `attention.value_length_swa` and `rope.dimension_count_swa`, if these keys are present.
    Same,
    /// As [`Self::Same`], but `rope.dimension_count_swa` or else `rope.dimension_count` elements rotate in layers with a
    /// window.
    WindowedRotation,
    /// As [`Self::Same`], but `attention.key_length_swa`, `attention.value_length_swa` and `rope.dimension_count_swa`
    /// in layers with a window. Latent attention has `attention.kv_lora_rank_swa`, `attention.key_length_mla_swa` and
    /// `attention.value_length_mla_swa` there, and else `rope.dimension_count` rotated elements.
    WindowedOwn,
}

/// Factor on queries that grows with the position, a step for every full length of tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TemperatureForm {
    /// No factor.
    None,
    /// The scale is `attention.temperature_scale`, if present and not 0; the length is the original context.
    PerContext,
    /// The same scale; the length is `attention.temperature_length`, if present and not 0.
    PerLength,
    /// Only in layers that do not rotate.
    Unrotated {
        /// The scale of a step.
        scale: f32,
        /// The length, in tokens.
        length: u64,
    },
}

/// ALiBi: the logit of a token loses its distance times a slope, which differs by head. The smallest slope is
/// `2^-bias`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Alibi {
    /// No bias.
    None,
    /// With the bias `attention.max_alibi_bias`, if present and not 0.
    Key,
    /// As [`Self::Key`], but without the key these models have this bias.
    In(Models, f32),
}

/// Factor on the dot products if `attention.scale` is absent or 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ScaleRule {
    /// `1 / √head size`
    Head,
    /// `1 / head size`
    HeadSquared,
    /// `attention.output_scale` or else this number, whatever `attention.scale` is.
    OutputKey(f32),
    /// `1 / √(embedding_length / heads)` in these models, else as [`Self::Head`].
    WidthIn(Models),
    /// 1
    One,
}

/// The place of the factor on the dot products. Only rounding depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScaleOn {
    /// On the logits, by the attention op.
    Logits,
    /// On the rotated queries.
    Queries,
}

/// The layers with a window of `attention.sliding_window` tokens, if that key is present and not 0.
/// `attention.sliding_window_pattern` overrides the period, or lists the layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// No layers. The key is ignored.
    None,
    /// All.
    All,
    /// All but the last of every this many.
    AllButEvery(u32),
    /// All but the first of every this many.
    AllButFirstOfEvery(u32),
    /// The layers that `attention.sliding_window_pattern` lists. Without the key all layers have full attention.
    Listed,
}

/// The kind of window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowKind {
    /// The last `attention.sliding_window` tokens.
    Sliding,
    /// The last this many tokens. The key only decides if there is a window.
    SlidingBy(u64),
    /// The chunk, of this many tokens, that holds the token. A key of 0 means no window; other values of the key are
    /// ignored.
    Chunks(u64),
}
