//! The shapes of batches that a session has.

use tpc_core::pipeline::CacheSizes;
use tpc_ir::program::BatchShape;
use tpc_ir::{CELL_BLOCK, Window};
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
    sizes
        .iter()
        .map(|&n| config.batch_shape(n, outputs))
        .collect()
}

/// How sequences share the cells of caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Parts {
    /// The number of parts; 1 where all cells are for all sequences.
    pub(super) count: usize,
    /// The most tokens of a sequence.
    pub(super) each: usize,
    /// Cells of a part in layers with a sliding window.
    pub(super) swa: usize,
}

impl Parts {
    /// The shares of so many sequences in caches of so many cells. Each has those that it has alone with its part of the
    /// context, where there are enough: an artefact may have been made for fewer.
    pub(super) fn new(
        [n_ctx, n_ctx_swa]: [usize; 2],
        window: Option<Window>,
        ubatch: usize,
        sequences: usize,
    ) -> Parts {
        let alone = |each: usize| {
            let sizes = CacheSizes::new(each as u64, window, ubatch as u64, 1);
            usize::try_from(sizes.n_ctx_swa).unwrap_or(usize::MAX)
        };
        let blocks = |n: usize| n / sequences.max(1) / CELL_BLOCK * CELL_BLOCK;
        let (each, swa) = (blocks(n_ctx), alone(blocks(n_ctx)));
        let fits = window.is_none() || swa <= blocks(n_ctx_swa);
        match sequences {
            2.. if each > 0 && fits => Parts {
                count: sequences,
                each,
                swa,
            },
            n => Parts {
                count: 1,
                each: n_ctx / n.max(1),
                swa: match n {
                    0 | 1 => alone(n_ctx).min(n_ctx_swa),
                    _ => n_ctx_swa,
                },
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sequence_has_the_cells_that_it_has_alone() {
        let window = Some(Window::Sliding(100));
        for (n_ctx, n) in [(1024, 1), (1024, 2), (4096, 3), (8192, 4)] {
            let sizes = |n_ctx: usize, n: usize| {
                let sizes = CacheSizes::new(n_ctx as u64, window, 64, n as u64);
                [sizes.n_ctx as usize, sizes.n_ctx_swa as usize]
            };
            let parts = Parts::new(sizes(n_ctx, n), window, 64, n);
            assert_eq!(parts.count, n);
            assert!(parts.each >= n_ctx / n);
            let alone = Parts::new(sizes(parts.each, 1), window, 64, 1);
            assert_eq!(Parts { count: n, ..alone }, parts, "{n_ctx} {n}");
        }
        // One sequence of a plan for four has all of the context, and a window's cells.
        let few = Parts::new([8192, 4 * 256], window, 64, 1);
        assert_eq!((few.each, few.swa), (8192, 256));
        // Caches that were made for fewer are shared.
        assert_eq!(Parts::new([8192, 512], window, 64, 4).count, 1);
    }
}
