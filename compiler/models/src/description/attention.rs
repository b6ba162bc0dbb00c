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
    /// The usual form of the query, key and value projections.
    pub qkv: QkvForm,
    /// Biases of the query, key and value projections.
    pub qkv_bias: Presence,
    /// `attention.clamp_kqv`, the bound on elements of queries, keys and values.
    pub clamp: KeyUse,
    /// The source of values.
    pub value_source: ValueSource,
    /// Normalisation of values.
    pub value_norm: ValueNorm,
    /// `attention.shared_kv_layers`: this number of last layers read the caches of the last earlier layer of their
    /// kind, with or without a window.
    pub shared_kv: KeyUse,
    /// Factor on queries that grows with the position.
    pub temperature: TemperatureForm,
    /// Bias of the output projection.
    pub out_bias: Presence,
    /// `attention.value_scale`, a factor on the output.
    pub value_scale: KeyUse,
    /// The size of heads per layer.
    pub head_sizes: HeadSizes,
    /// Normalisation of queries and keys.
    pub qk_norm: QkNorm,
    /// The order of norm and rotation of queries and keys.
    pub qk_norm_order: QkNormOrder,
    /// Rotary position embedding.
    pub rope: Option<RopeForm>,
    /// Logit bias that grows with the distance.
    pub alibi: Alibi,
    /// Factor on the dot products without a key.
    pub scale: ScaleRule,
    /// The place of that factor.
    pub scale_on: ScaleOn,
    /// `attn_logit_softcapping`, the bound of the logits.
    pub softcap: KeyUse,
    /// The layers with a window.
    pub window: Window,
    /// The kind of window.
    pub window_kind: WindowKind,
    /// The models with windows.
    pub window_in: Models,
    /// The window in tokens if `attention.sliding_window` is absent or 0.
    pub window_default: Option<u64>,
    /// `attn_sinks`: a logit per head that takes part in the softmax without a value.
    pub sinks: Presence,
    /// Factor on the output before its projection.
    pub out_gate: OutGate,
    /// Multi-head latent attention, which computes keys and values from a latent vector. Key and value projection
    /// choices are then ignored.
    pub latent: Option<LatentForm>,
    /// `attn_k_norm`, a norm of the keys' rotated part before its rotation, in latent attention.
    pub latent_key_norm: Presence,
    /// Attention to rows that are both key and value, of tokens and of blocks. Projection choices are then ignored.
    pub compressed: Option<CompressedForm>,
    /// The indexer, in layers with latent attention and no window, or with blocks that it selects.
    pub indexer: Option<IndexerForm>,
}

/// The usual form of the projections from the latent vector. Either form is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LatentForm {
    /// `attn_k_b` and `attn_v_b`, a matrix per head. Queries are multiplied by `attn_k_b`, and the cache holds latent
    /// vectors.
    Absorbed,
    /// `attn_kv_b`: the cache holds all heads' keys and values.
    Expanded,
}

/// Factor on attention's output before its projection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutGate {
    /// No gate.
    None,
    /// The sigmoid of a gate in `attn_q`: per head the query, then the gate.
    WithQueries,
    /// A function of `attn_gate`'s product with the layer's normalised input, in layers with the tensor.
    Projected(UnaryKind, GateWidth, Presence),
}

/// The size of a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateWidth {
    /// One per element.
    Elements,
    /// One per head.
    Heads,
    /// One per head or one per element: the tensor's size decides. Usually one per head.
    HeadsOrElements,
}

/// The tokens of its sequence that a token attends to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Up to itself.
    Causal,
    /// All tokens, as in models that generate by diffusion. These models do not have caches: a batch holds whole
    /// sequences.
    Bidirectional,
}

/// The usual form of the query, key and value projections. Either form is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QkvForm {
    /// `attn_q`, `attn_k`, `attn_v`
    Separate,
    /// `attn_qkv`: rows of queries, keys, values.
    Fused,
    /// `attn_qkv`, with three times the query rows. Keys start at row `embedding_length`, values at twice that row.
    FusedThirds,
}

/// Normalisation by `attn_q_norm` and `attn_k_norm`, of the same kind as the other norms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QkNorm {
    /// No norm.
    None,
    /// Each head by itself, with one weight `[head size]` for all heads.
    Head,
    /// Same as [`Self::Head`], if the file has the weights.
    OptionalHead,
    /// Each head by itself, with its own weight `[head size, heads]`, if the file has the weights.
    OptionalHeads,
    /// All heads together, with a weight `[head size · heads]`.
    All,
    /// Same as [`Self::All`], if the file has the query norm; optional biases.
    OptionalAll,
    /// Each head by itself: queries with one number per head, `[1, heads]`, keys without weight.
    QueriesByHead,
    /// Each head by itself without weight, in layers that rotate, except in models with this number of experts.
    UnweightedUnlessExperts(u64),
}

/// The order of norm and rotation. Norms over all heads always come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QkNormOrder {
    /// Norm, then rotation.
    NormFirst,
    /// Rotation, then norm.
    RotationFirst,
}

/// The source of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueSource {
    /// Their own projection.
    Projected,
    /// Layers without `attn_v` use the key projection, before its norm and rotation.
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

/// The size of heads per layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadSizes {
    /// `attention.key_length` and `attention.value_length` in all. If the first layer has a window, the keys
    /// `attention.key_length_swa`, `attention.value_length_swa` and `rope.dimension_count_swa` take precedence.
    Same,
    /// Same as [`Self::Same`], but layers with a window rotate `rope.dimension_count_swa` elements, or else
    /// `rope.dimension_count`.
    WindowedRotation,
    /// Same as [`Self::Same`], but layers with a window have `attention.key_length_swa`, `attention.value_length_swa`
    /// and `rope.dimension_count_swa`. Latent attention has `attention.kv_lora_rank_swa`,
    /// `attention.key_length_mla_swa` and `attention.value_length_mla_swa` there, or else `rope.dimension_count`
    /// rotated elements.
    WindowedOwn,
}

/// Factor on queries that grows with the position: one step after every `length` tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TemperatureForm {
    /// No factor.
    None,
    /// The scale is `attention.temperature_scale` (0: off); the length is the original context.
    PerContext,
    /// The same scale; the length is `attention.temperature_length` (0: off).
    PerLength,
    /// Only in layers without rotation.
    Unrotated {
        /// The scale of a step.
        scale: f32,
        /// The length in tokens.
        length: u64,
    },
}

/// ALiBi: a token's logit loses its distance times the head's slope. The smallest slope is `2^-bias`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Alibi {
    /// No bias.
    None,
    /// The bias `attention.max_alibi_bias` (0: off).
    Key,
    /// Same as [`Self::Key`]; without the key these models have this bias.
    In(Models, f32),
}

/// Factor on the dot products if `attention.scale` is absent or 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ScaleRule {
    /// `1 / √head size`
    Head,
    /// `1 / head size`
    HeadSquared,
    /// `attention.output_scale` or else this number; `attention.scale` is ignored.
    OutputKey(f32),
    /// `1 / √(embedding_length / heads)` in these models, else as [`Self::Head`].
    WidthIn(Models),
    /// 1
    One,
}

/// The place of the factor on the dot products, which affects only rounding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScaleOn {
    /// On the logits, by the attention op.
    Logits,
    /// On the rotated queries.
    Queries,
}

/// The layers with a window of `attention.sliding_window` tokens (0: off). `attention.sliding_window_pattern` overrides
/// the period, or lists the layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// None; the key is ignored.
    None,
    /// All.
    All,
    /// All but the last of every `n`.
    AllButEvery(u32),
    /// All but the first of every `n`.
    AllButFirstOfEvery(u32),
    /// The layers that `attention.sliding_window_pattern` lists; none without the key.
    Listed,
}

/// The kind of window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowKind {
    /// The last `attention.sliding_window` tokens.
    Sliding,
    /// The last `n` tokens. The key only switches the window on.
    SlidingBy(u64),
    /// The token's chunk of `n` tokens. A key of 0 switches it off; other values are ignored.
    Chunks(u64),
}
