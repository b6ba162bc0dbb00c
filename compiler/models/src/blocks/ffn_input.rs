//! The inputs of the feed-forward sublayer.

use tpc_ir::Value;

/// The inputs of the feed-forward sublayer, `[n_embd, n_tokens]` each.
#[derive(Clone, Copy)]
pub(crate) struct FfnInput {
    /// Its own.
    pub(crate) x: Value,
    /// That of the layer.
    pub(crate) layer: Value,
}
