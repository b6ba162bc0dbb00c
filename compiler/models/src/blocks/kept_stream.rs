use tpc_ir::Value;

/// A residual stream kept for later layers, `[n_embd, n_tokens]`, and its norm without weight.
#[derive(Clone, Copy)]
pub(crate) struct KeptStream {
    pub(super) raw: Value,
    pub(super) normed: Value,
}
