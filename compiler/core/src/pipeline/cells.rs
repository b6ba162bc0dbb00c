use tpc_ir::{CELL_BLOCK, Window, cache_cells};

/// Numbers of KV cache cells. Graphs have symbols of the same names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheSizes {
    /// Cells of layers with full attention.
    pub n_ctx: u64,
    /// Cells of layers with a sliding window.
    pub n_ctx_swa: u64,
}

impl CacheSizes {
    /// Computes the sizes for `parallel` sequences in a context. Window layers keep the window and one batch per
    /// sequence, rounded up to 256 cells as in llama.cpp.
    pub fn new(ctx_size: u64, window: Option<Window>, ubatch: u64, parallel: u64) -> CacheSizes {
        let per_sequence = match parallel {
            0 | 1 => ctx_size,
            n => ctx_size / n,
        };
        let swa = window.map_or(per_sequence, |w| {
            let cells = w.tokens().saturating_add(ubatch);
            cells
                .checked_next_multiple_of(256)
                .unwrap_or(per_sequence)
                .min(per_sequence)
        });
        CacheSizes {
            n_ctx: cache_cells(per_sequence, parallel),
            n_ctx_swa: cache_cells(swa, parallel),
        }
    }

    /// Divides the cells among `sequences`. If the caches have too few cells per sequence, all sequences share all
    /// cells.
    pub fn divide(self, window: Option<Window>, ubatch: u64, sequences: u64) -> SequenceCells {
        let alone = |ctx_size: u64| CacheSizes::new(ctx_size, window, ubatch, 1).n_ctx_swa;
        let block = CELL_BLOCK as u64;
        let part = |cells: u64| cells / sequences.max(1) / block * block;
        let (ctx_size, swa) = (part(self.n_ctx), alone(part(self.n_ctx)));
        let fits = window.is_none() || swa <= part(self.n_ctx_swa);
        match sequences {
            2.. if ctx_size > 0 && fits => SequenceCells {
                parts: sequences,
                ctx_size,
                swa,
            },
            n => SequenceCells {
                parts: 1,
                ctx_size: self.n_ctx / n.max(1),
                swa: match n {
                    0 | 1 => alone(self.n_ctx).min(self.n_ctx_swa),
                    _ => self.n_ctx_swa,
                },
            },
        }
    }
}

/// Cells per sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SequenceCells {
    /// Number of parts of the cache; 1 if sequences share all cells.
    pub parts: u64,
    /// Maximum tokens per sequence.
    pub ctx_size: u64,
    /// Cells per part in window layers.
    pub swa: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sequence_has_the_cells_that_it_has_alone() {
        let window = Some(Window::Sliding(100));
        for (n_ctx, n) in [(1024, 1), (1024, 2), (4096, 3), (8192, 4)] {
            let sizes = |n_ctx: u64, n: u64| CacheSizes::new(n_ctx, window, 64, n);
            let cells = sizes(n_ctx, n).divide(window, 64, n);
            assert_eq!(cells.parts, n);
            assert!(cells.ctx_size >= n_ctx / n);
            let alone = sizes(cells.ctx_size, 1).divide(window, 64, 1);
            assert_eq!(SequenceCells { parts: n, ..alone }, cells, "{n_ctx} {n}");
        }
        let sizes = |n_ctx, n_ctx_swa| CacheSizes { n_ctx, n_ctx_swa };
        // One sequence of a plan for four gets the whole context and a window's cells.
        let one = sizes(8192, 4 * 256).divide(window, 64, 1);
        assert_eq!((one.ctx_size, one.swa), (8192, 256));
        assert_eq!(sizes(8192, 512).divide(window, 64, 4).parts, 1);
    }
}
