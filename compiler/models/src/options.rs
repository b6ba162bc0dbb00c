//! The user's choices for a graph.

use tpc_ir::DType;

/// The user's choices for a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LowerOptions {
    /// Element type of the cache of keys.
    pub cache_type_k: DType,
    /// Element type of the cache of values.
    pub cache_type_v: DType,
    /// The context size in tokens. The code calls it `ctx_size` everywhere; caches have a number of cells that follows from it.
    pub ctx_size: u64,
    /// The source of draft tokens.
    pub drafting: Drafting,
}

/// The source of draft tokens. The model checks several of them at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Drafting {
    /// No drafts.
    #[default]
    None,
    /// The draft blocks in the model's file (multi-token prediction).
    Mtp,
}
