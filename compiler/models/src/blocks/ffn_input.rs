use tpc_ir::Value;

/// Inputs of the feed-forward sublayer, `[n_embd, n_tokens]` each.
#[derive(Clone, Copy)]
pub(crate) struct FfnInput {
    pub(crate) x: Value,
    /// The same before its norm.
    pub(crate) stream: Value,
    /// The layer's input.
    pub(crate) layer: Value,
}
