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
    /// Result of the graph.
    pub result: GraphResult,
}

/// Result of a model's graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GraphResult {
    /// The model's own result: logits, or the embeddings of a model that computes embeddings.
    #[default]
    Own,
    /// Embeddings. A model of logits gives its last hidden state after the norm.
    Embeddings,
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
