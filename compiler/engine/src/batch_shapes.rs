//! The configuration of a session, and the shapes of its batches.

use tpc_ir::Window;
use tpc_ir::program::BatchShape;
use tpc_runtime::SessionConfig;

/// The configuration of a session with so many cells of each kind.
pub(crate) fn config(
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
pub(crate) fn shapes(config: &SessionConfig, tokens: usize, outputs: usize) -> Vec<BatchShape> {
    let mut sizes = [1, outputs.min(tokens).max(1), tokens.max(1)].to_vec();
    sizes.dedup();
    sizes
        .iter()
        .map(|&n| config.batch_shape(n, outputs))
        .collect()
}
