//! The indexer of sparse attention, which selects the cells that a token attends to.

use tpc_ir::op::RopeMode;

use super::presence::Presence;

/// An indexer. It projects to query heads and to one key per token, which is cached. The score of a token is a weighted
/// sum over heads of dot products, cut off below 0. A token attends to the tokens with the best scores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IndexerForm {
    /// `Required` if every file has an indexer, else only files with `attention.indexer.top_k` have one.
    pub presence: Presence,
    /// Its projections.
    pub tensors: IndexerTensors,
    /// The elements of its queries and keys that form a pair.
    pub mode: RopeMode,
    /// The `rope.dimension_count` elements that are rotated.
    pub rotated: IndexerPart,
    /// The layers with an indexer of their own.
    pub layers: IndexerLayers,
    /// Added under the root of the norm of keys.
    pub eps: IndexerEps,
    /// The cells or blocks that it selects.
    pub selects: Selection,
}

/// The projections of an indexer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexerTensors {
    /// `indexer.attn_q_b` projects the latent vector of queries, `indexer.attn_k` the layer's input, with a layer norm of
    /// keys, and `indexer.proj` gives each head a weight.
    OfLatent,
    /// `indexer.q_proj` and `indexer.k_proj` project the layer's input, with an RMS norm of each head. All heads have
    /// the same weight.
    OfInput,
}

/// The epsilon of the norm of an indexer's keys.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum IndexerEps {
    /// The epsilon of other norms.
    Model,
    /// This number.
    Fixed(f32),
    /// `attention.layer_norm_epsilon`, or 0 without that key.
    LayerNormKey,
}

/// The cells or blocks that an indexer selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selection {
    /// The `attention.indexer.top_k` best cells.
    Cells,
    /// The best blocks of `attention.compress_ratios` consecutive tokens, `attention.indexer.top_k` tokens in total,
    /// and the tokens after the last whole block. A block's key is the mean of its tokens' keys, normalised and rotated
    /// afterwards. Layers with a ratio of 0 attend to all tokens.
    MeanBlocks,
    /// As [`Self::MeanBlocks`] with blocks of `attention.indexer.kpool` tokens. The keys of a block's tokens are
    /// normalised and weighted per element. The weights are a softmax of `indexer_compressor_gate`'s products with the
    /// layer's input plus `indexer_compressor_ape`. Tokens after the last whole block are hidden if
    /// `attention.indexer.kpool_select_tail` is false.
    WeightedBlocks,
    /// The `attention.indexer.top_k` best blocks of `attention.indexer.block_size` tokens, for every KV head by itself.
    /// tpc only accepts contexts in which these are all blocks, so every token stays visible.
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

/// The layers with an indexer of their own. The others attend to the cells that the last such layer selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexerLayers {
    /// All.
    All,
    /// The layers that `attention.indexer.types` lists. Without a list, all layers. In models with a context of at
    /// least this many tokens, it is then the first two and the first of every four after these.
    ListedOrByContext(u64),
    /// The layers that `attention.indexer.types` lists.
    Listed,
    /// The layers that `attention.indexer.types` lists; all without a list.
    ListedOrAll,
    /// All but the first `leading_dense_block_count`.
    AfterLeading,
}
