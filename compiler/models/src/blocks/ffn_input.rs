//! The inputs of the feed-forward sublayer.

use tpc_ir::Value;

/// `[n_embd, n_tokens]` each.
#[derive(Clone, Copy)]
pub(crate) struct FfnInput {
    /// The sublayer's input.
    pub(crate) x: Value,
    /// The layer's input.
    pub(crate) layer: Value,
}
