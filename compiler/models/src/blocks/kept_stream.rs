//! Residual streams that layers keep for later layers.

use tpc_ir::Value;

/// A residual stream that a layer kept, `[n_embd, n_tokens]`, and its norm without weight.
#[derive(Clone, Copy)]
pub(crate) struct KeptStream {
    pub(super) raw: Value,
    pub(super) normed: Value,
}
