use tpc_ir::Window;
use tpc_ir::program::BatchShape;
use tpc_runtime::SessionConfig;

/// Returns a session's configuration, with `n_ctx` cells per full cache and `n_ctx_swa` per windowed cache.
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

/// Returns the batch shapes of a session: 1, `outputs` and `tokens` tokens, at most `outputs` with logits.
pub(crate) fn shapes(config: &SessionConfig, tokens: usize, outputs: usize) -> Vec<BatchShape> {
    let mut sizes = [1, outputs.min(tokens).max(1), tokens.max(1)].to_vec();
    sizes.dedup();
    sizes
        .iter()
        .map(|&n| config.batch_shape(n, outputs))
        .collect()
}
