use tpc_ir::DType;

/// Choices of the user for a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LowerOptions {
    /// Element type of the key cache.
    pub cache_type_k: DType,
    /// Element type of the value cache.
    pub cache_type_v: DType,
    /// Context in tokens, which decides the number of cache cells.
    pub ctx_size: u64,
    /// Source of draft tokens.
    pub drafting: Drafting,
}

/// Source of draft tokens. The model checks several draft tokens together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Drafting {
    /// No draft tokens.
    #[default]
    None,
    /// Draft blocks in the file (multi-token prediction).
    Mtp,
}
