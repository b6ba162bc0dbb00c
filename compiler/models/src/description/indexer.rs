//! The indexer of sparse attention, which selects the cells that a token attends to.

use tpc_ir::op::RopeMode;

use super::presence::Presence;

/// An indexer: `indexer.attn_q_b` projects the latent vector of queries to its heads, `indexer.attn_k` the layer's input to
/// one key per token, which is normalised and cached, and `indexer.proj` to a weight per head. The sum over heads of
/// weights times dot products above 0 scores a cell; a token attends to the `attention.indexer.top_k` best.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IndexerForm {
    /// Whether every file has one, or those with `attention.indexer.top_k`.
    pub presence: Presence,
    /// The elements of its queries and keys that form a pair.
    pub mode: RopeMode,
    /// The `rope.dimension_count` elements that are rotated.
    pub rotated: IndexerPart,
    /// The layers with an indexer of their own.
    pub layers: IndexerLayers,
    /// Added under the root of the norm of keys, if it is not what other norms add.
    pub eps: Option<f32>,
}

/// A part of a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexerPart {
    /// The first elements.
    First,
    /// The last elements.
    Last,
}

/// The layers with an indexer of their own. The others attend to the cells that the last such layer selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexerLayers {
    /// All.
    All,
    /// Those that `attention.indexer.types` lists. Without a list all, or in models with a context of at least this many
    /// tokens the first two and then the first of every four.
    ListedOrByContext(u64),
    /// Those that `attention.indexer.types` lists.
    Listed,
}
