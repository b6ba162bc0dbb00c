use tpc_ir::op::RopeMode;

use super::presence::Presence;

/// The indexer of sparse attention, which projects to query heads and one cached key per token. A token's score is a
/// weighted sum over heads of dot products, cut off below 0. A token attends to the tokens with the best scores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IndexerForm {
    /// `Required` if every file has an indexer, else only files with `attention.indexer.top_k` have one.
    pub presence: Presence,
    /// Projections.
    pub tensors: IndexerTensors,
    /// Elements that form a pair.
    pub mode: RopeMode,
    /// The `rope.dimension_count` rotated elements.
    pub rotated: IndexerPart,
    /// Layers with their own indexer.
    pub layers: IndexerLayers,
    /// Epsilon under the root of the key norm.
    pub eps: IndexerEps,
    /// Cells or blocks to select.
    pub selects: Selection,
}

/// Projections of an indexer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexerTensors {
    /// `indexer.attn_q_b` projects the latent vector of queries, `indexer.attn_k` the layer's input, with a layer norm
    /// of keys. `indexer.proj` gives each head a weight.
    OfLatent,
    /// Same as [`Self::OfLatent`], but `indexer.attn_q_b` projects the layer's input after a layer norm,
    /// `indexer.q_norm`.
    OfNormedInput,
    /// `indexer.q_proj` and `indexer.k_proj` project the layer's input, with an RMS norm of each head. All heads have
    /// the same weight.
    OfInput,
}

/// Epsilon of an indexer's key norm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum IndexerEps {
    /// Epsilon of the other norms.
    Model,
    /// A fixed number.
    Fixed(f32),
    /// `attention.layer_norm_epsilon`, by default 0.
    LayerNormKey,
}

/// Cells or blocks that an indexer selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selection {
    /// The `attention.indexer.top_k` best cells.
    Cells,
    /// The best blocks of `attention.compress_ratios` consecutive tokens, `attention.indexer.top_k` tokens in total,
    /// and the tokens after the last whole block. A block's key is the mean of its tokens' keys, normalised and rotated
    /// afterwards. Layers with a ratio of 0 attend to all tokens.
    MeanBlocks,
    /// Same as [`Self::MeanBlocks`] with blocks of `attention.indexer.kpool` tokens. Token keys are normalised and
    /// weighted per element by a softmax of `indexer_compressor_gate`'s products with the layer's input plus
    /// `indexer_compressor_ape`. Tokens after the last whole block are hidden if `attention.indexer.kpool_select_tail`
    /// is false.
    WeightedBlocks,
    /// The `attention.indexer.top_k` best blocks of `attention.indexer.block_size` tokens, per KV head. tpc refuses
    /// contexts longer than these blocks, so every token stays visible.
    BlocksPerHead,
}

/// A part of a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexerPart {
    /// The first elements.
    First,
    /// The last elements.
    Last,
    /// No elements.
    None,
}

/// Layers with their own indexer. Other layers use the selection of the last such layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexerLayers {
    /// All layers.
    All,
    /// The layers that `attention.indexer.types` lists. Without a list: all layers, or in models with a context of at
    /// least this many tokens the first two and the first of every four after these.
    ListedOrByContext(u64),
    /// The layers that `attention.indexer.types` lists.
    Listed,
    /// The layers that `attention.indexer.types` lists, or else all layers.
    ListedOrAll,
    /// All layers but the first `leading_dense_block_count`.
    AfterLeading,
}
