//! The shapes of batches that a session has.

use tpc_ir::program::BatchShape;
use tpc_ir::{Bindings, Symbol, Window};
use tpc_runtime::SessionConfig;

/// The configuration of a session with so many cells of each kind.
pub(super) fn config(
    [n_ctx, n_ctx_swa]: [usize; 2],
    window: Option<Window>,
    sequences: usize,
) -> SessionConfig {
    let config = SessionConfig::new(n_ctx).with_sequences(sequences);
    match window {
        Some(window) => config.with_window(window, n_ctx_swa),
        None => config,
    }
}

/// The shapes of a session for batches of up to `tokens` tokens, of at most `outputs` of which logits are asked for: one token,
/// as many as have logits, and a whole batch.
pub(super) fn shapes(config: &SessionConfig, tokens: usize, outputs: usize) -> Vec<BatchShape> {
    let mut sizes = [1, outputs.min(tokens).max(1), tokens.max(1)].to_vec();
    sizes.dedup();
    sizes.iter().map(|&n| shape(config, n, outputs)).collect()
}

/// The shape of batches of up to `tokens` tokens.
fn shape(config: &SessionConfig, tokens: usize, outputs: usize) -> BatchShape {
    let n = |n: usize| n as u64;
    BatchShape {
        most: Bindings::default()
            .with(Symbol::NTokens, n(tokens))
            .with(Symbol::NKv, n(config.n_ctx))
            .with(Symbol::NKvSwa, n(config.n_ctx_swa))
            .with(Symbol::NCtx, n(config.n_ctx))
            .with(Symbol::NCtxSwa, n(config.n_ctx_swa))
            .with(Symbol::NSeqs, n(config.n_seq_max.min(tokens)))
            .with(Symbol::NSeqTokens, n(tokens))
            .with(Symbol::NSeqMax, n(config.n_seq_max))
            .with(Symbol::NOutputs, n(outputs.min(tokens))),
    }
}
