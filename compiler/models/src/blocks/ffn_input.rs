//! The inputs of the feed-forward sublayer.

use tpc_ir::Value;

/// `[n_embd, n_tokens]` each.
#[derive(Clone, Copy)]
pub(crate) struct FfnInput {
    pub(crate) x: Value,
    pub(crate) layer: Value,
}
