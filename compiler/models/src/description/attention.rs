use tpc_ir::op::UnaryKind;

use super::compressed::CompressedForm;
use super::indexer::IndexerForm;
use super::models::Models;
use super::presence::{KeyUse, Presence};
use super::rope::RopeForm;

/// Attention of a layer.
#[derive(Clone, Debug, PartialEq)]
pub struct AttentionForm {
    /// The tokens that a token attends to.
    pub direction: Direction,
    /// Usual form of the query, key and value projections.
    pub qkv: QkvForm,
    /// Biases of the query, key and value projections.
    pub qkv_bias: Presence,
    /// `attention.clamp_kqv`: bound on elements of queries, keys and values.
    pub clamp: KeyUse,
    /// Source of values.
    pub value_source: ValueSource,
    /// Normalisation of values.
    pub value_norm: ValueNorm,
    /// `attention.shared_kv_layers`: number of last layers that share caches. Each reads the caches of the last earlier
    /// layer of its kind (with or without a window).
    pub shared_kv: KeyUse,
    /// `attention.kv_source_map`: for each layer, the layer whose caches it reads.
    pub kv_sources: KeyUse,
    /// `attn_ssmax`, numbers `a` (`weight`) and `b` (`bias`) per head: queries are multiplied by `a ln(position + 1) + b`.
    /// With an indexer, `indexer.ssmax` has its numbers.
    pub log_scale: Presence,
    /// Factor on queries that grows with the position.
    pub temperature: TemperatureForm,
    /// Bias of the output projection.
    pub out_bias: Presence,
    /// `attention.value_scale`: factor on the output.
    pub value_scale: KeyUse,
    /// Head sizes per layer.
    pub head_sizes: HeadSizes,
    /// Normalisation of queries and keys.
    pub qk_norm: QkNorm,
    /// Order of norm and rotation of queries and keys.
    pub qk_norm_order: QkNormOrder,
    /// Rotary position embedding.
    pub rope: Option<RopeForm>,
    /// Logit bias that grows with the distance.
    pub alibi: Alibi,
    /// Factor on the dot products, if no key gives it.
    pub scale: ScaleRule,
    /// Place of the factor on the dot products.
    pub scale_on: ScaleOn,
    /// `attn_logit_softcapping`: bound of the logits.
    pub softcap: KeyUse,
    /// Layers with a window.
    pub window: Window,
    /// The kind of window.
    pub window_kind: WindowKind,
    /// Models with windows.
    pub window_in: Models,
    /// Window in tokens if `attention.sliding_window` is absent or 0.
    pub window_default: Option<u64>,
    /// `attn_sinks`: a logit per head that takes part in the softmax without a value.
    pub sinks: Presence,
    /// `value_embd`, a vector per token of the vocabulary. In layers with `attn_ve_gate`, the vector is added to the
    /// values, times the sigmoid of a number per KV head.
    pub token_values: Presence,
    /// `attn_xsa_alpha`, a number per head: the part of the output that is parallel to the token's own value, times
    /// this number, is subtracted.
    pub own_value: Presence,
    /// Normalisation of the output before the gate.
    pub out_norm: ValueNorm,
    /// Factor on the output before the output projection.
    pub out_gate: OutGate,
    /// Bias of the gate that `attn_gate` projects, one number per head.
    pub gate_bias: Presence,
    /// Multi-head latent attention, which computes keys and values from a latent vector and ignores the choices of key
    /// and value projections.
    pub latent: Option<LatentForm>,
    /// `attention.q_lora_rank`: size of the latent vector of queries.
    pub latent_queries: KeyUse,
    /// `attn_k_norm` in latent attention: norm of the keys' rotated part, before the rotation.
    pub latent_key_norm: Presence,
    /// Attention to rows that serve as key and value, of tokens and of blocks. Ignores the choices of projections.
    pub compressed: Option<CompressedForm>,
    /// The indexer, in layers with latent attention and no window, or in layers whose blocks it selects.
    pub indexer: Option<IndexerForm>,
}

/// Usual form of the projections from the latent vector. tpc reads both forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LatentForm {
    /// `attn_k_b` and `attn_v_b`: a matrix per head. Queries are multiplied by `attn_k_b`. The cache holds latent
    /// vectors.
    Absorbed,
    /// `attn_kv_b`: one matrix. The cache holds all heads' keys and values.
    Expanded,
}

/// Factor on attention's output before the output projection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutGate {
    /// No gate.
    None,
    /// Sigmoid of a gate in `attn_q`, which holds each head's query, then its gate.
    WithQueries,
    /// Function of the product of `attn_gate` with the layer's normalised input, in layers with the tensor.
    Projected(UnaryKind, GateWidth, Presence),
    /// Same as [`Self::Projected`], with the function `log₂(1 + 2ˣ)`.
    Softplus2(GateWidth, Presence),
}

/// Size of a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateWidth {
    /// One number per element.
    Elements,
    /// One number per head.
    Heads,
    /// One number per head or per element: the tensor's size decides. Usually one per head.
    HeadsOrElements,
}

/// The tokens of its sequence that a token attends to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// All tokens up to itself.
    Causal,
    /// All tokens, in models that generate by diffusion. These models do not have caches: a batch holds whole
    /// sequences.
    Bidirectional,
    /// Same as [`Self::Bidirectional`], in models that compute embeddings. `attention.causal` must be false.
    BidirectionalByKey,
}

/// Usual form of the query, key and value projections. tpc reads both forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QkvForm {
    /// `attn_q`, `attn_k`, `attn_v`.
    Separate,
    /// `attn_qkv`: rows of queries, keys, values.
    Fused,
    /// `attn_qkv` with three times the query rows. Keys start at row `embedding_length`, values at twice that row.
    FusedThirds,
}

/// Normalisation by `attn_q_norm` and `attn_k_norm`, of the same kind as the other norms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QkNorm {
    /// No norm.
    None,
    /// Each head separately, with one weight `[head size]` for all heads.
    Head,
    /// Same as [`Self::Head`], if the file has the weights.
    OptionalHead,
    /// Each head separately, with its own weight `[head size, heads]`, if the file has the weights.
    OptionalHeads,
    /// Same as [`Self::OptionalHeads`], but the weights of all heads are one row, `[head size · heads]`.
    OptionalHeadsInRow,
    /// Each head separately by a layer norm with epsilon 1e-5, with its own weight `[head size, heads]` and optional
    /// biases.
    LayerHeads,
    /// Each head separately, without weight.
    Unweighted,
    /// All heads together, with a weight `[head size · heads]`.
    All,
    /// Same as [`Self::All`], if the file has the query norm; optional biases.
    OptionalAll,
    /// Each head separately: queries with one number per head, `[1, heads]`, keys without weight.
    QueriesByHead,
    /// Both halves of each head separately, with one weight `[head size]` for all heads.
    Halves,
    /// Each head separately without weight, in layers that rotate, except in models with this number of experts.
    UnweightedUnlessExperts(u64),
}

/// Order of norm and rotation. Norms over all heads always come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QkNormOrder {
    /// Norm, then rotation.
    NormFirst,
    /// Rotation, then norm.
    RotationFirst,
}

/// Source of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueSource {
    /// A projection for values.
    Projected,
    /// The key projection before norm and rotation, in layers without `attn_v`.
    ProjectedOrKeys,
    /// In layers with experts of models with `attention.value_expert_count`: the weighted sum of the SiLU of
    /// `attention.value_expert_used_count` projections `attn_v_exps`. `attn_v_gate` selects and weighs them like the
    /// feed-forward experts. In other layers a projection.
    RoutedBesideExperts,
}

/// Normalisation of values, or of attention's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueNorm {
    /// No norm.
    None,
    /// Each head separately, without weight.
    Head,
}

/// Head sizes per layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadSizes {
    /// `attention.key_length` and `attention.value_length` in all layers. If the first layer has a window,
    /// `attention.key_length_swa`, `attention.value_length_swa` and `rope.dimension_count_swa` take precedence.
    Same,
    /// Same as [`Self::Same`], but layers with a window rotate `rope.dimension_count_swa` elements, or else
    /// `rope.dimension_count`.
    WindowedRotation,
    /// Same as [`Self::Same`], but layers with a window have `attention.key_length_swa`, `attention.value_length_swa`
    /// and `rope.dimension_count_swa`. With latent attention they have `attention.kv_lora_rank_swa`,
    /// `attention.key_length_mla_swa` and `attention.value_length_mla_swa`, or else `rope.dimension_count` rotated
    /// elements.
    WindowedOwn,
}

/// Factor on queries that grows with the position, by one step after every `length` tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TemperatureForm {
    /// No factor.
    None,
    /// Scale `attention.temperature_scale` (0: off); the length is the original context.
    PerContext,
    /// Scale `attention.temperature_scale` (0: off); length `attention.temperature_length` (0: off).
    PerLength,
    /// A factor only in layers without rotation.
    Unrotated {
        /// Scale of a step.
        scale: f32,
        /// Length in tokens.
        length: u64,
    },
    /// A factor only in layers without rotation: `1 + position / length` to the power `scale`, with positions from 1.
    /// `attention.temperature_scale` and `attention.temperature_length` replace these numbers.
    UnrotatedPower {
        /// The power.
        scale: f32,
        /// Length in tokens.
        length: u64,
    },
}

/// ALiBi: a token's logit decreases by its distance times the head's slope. The smallest slope is `2^-bias`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Alibi {
    /// No bias.
    None,
    /// The bias `attention.max_alibi_bias` (0: off).
    Key,
    /// Same as [`Self::Key`]; without the key, these models have this bias.
    In(Models, f32),
}

/// Factor on the dot products if `attention.scale` is absent or 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ScaleRule {
    /// `1 / √head size`
    Head,
    /// `1 / head size`
    HeadSquared,
    /// `attention.output_scale`, or else this number; `attention.scale` is ignored.
    OutputKey(f32),
    /// `1 / √(embedding_length / heads)` in these models, else [`Self::Head`].
    WidthIn(Models),
    /// 1
    One,
}

/// Place of the factor on the dot products, which affects only rounding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScaleOn {
    /// The attention op scales the logits.
    Logits,
    /// The rotated queries are scaled.
    Queries,
}

/// The layers with a window of `attention.sliding_window` tokens (0: off). `attention.sliding_window_pattern` overrides
/// the period, or lists the layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// No layers; the key is ignored.
    None,
    /// All layers.
    All,
    /// All layers but the last of every `n`.
    AllButEvery(u32),
    /// All layers but the first of every `n`.
    AllButFirstOfEvery(u32),
    /// The layers that `attention.sliding_window_pattern` lists; no layers without the key.
    Listed,
}

/// Kind of window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowKind {
    /// The last `attention.sliding_window` tokens.
    Sliding,
    /// The last `n` tokens. `attention.sliding_window` only switches the window on.
    SlidingBy(u64),
    /// The token's chunk of `n` tokens. An `attention.sliding_window` of 0 switches the window off; other values are
    /// ignored.
    Chunks(u64),
    /// The tokens at most half of `attention.sliding_window` away, in both directions.
    Symmetric,
}
