//! The user's choices for a graph.

use tpc_ir::DType;

/// The user's choices for a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LowerOptions {
    /// Element type of the key cache.
    pub cache_type_k: DType,
    /// Element type of the value cache.
    pub cache_type_v: DType,
    /// The context in tokens. The cells of caches follow from it.
    pub ctx_size: u64,
    /// The source of draft tokens.
    pub drafting: Drafting,
}

/// The source of draft tokens, several of which the model checks at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Drafting {
    /// No drafts.
    #[default]
    None,
    /// The file's draft blocks (multi-token prediction).
    Mtp,
}
