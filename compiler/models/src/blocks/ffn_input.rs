//! The inputs of the feed-forward sublayer.

use tpc_ir::Value;

/// The inputs of the feed-forward sublayer, `[n_embd, n_tokens]` each.
#[derive(Clone, Copy)]
pub(crate) struct FfnInput {
    /// The input of the sublayer.
    pub(crate) x: Value,
    /// The input of the layer.
    pub(crate) layer: Value,
}
