use tpc_ir::program::BatchShape;
use tpc_ir::{Bindings, CellUnit, Symbol, Window};

/// The size of a session's caches and states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionConfig {
    /// Number of KV cells.
    pub n_ctx: usize,
    /// Number of KV cells of sliding-window layers: about window + batch tokens per sequence.
    pub n_ctx_swa: usize,
    /// Window of sliding-window layers, if any.
    pub window: Option<Window>,
    /// Maximum number of sequences. Each has a cell in recurrent states.
    pub n_seq_max: usize,
    /// Number of parts of the caches; 1 if all sequences share all cells. A sequence that is alone in its part gets the
    /// same bits as in a run alone.
    pub parts: usize,
    /// Maximum cells per part in sliding-window layers.
    pub part_swa: usize,
    /// The unit of the program's numbers of cells.
    pub cell_unit: CellUnit,
}

impl SessionConfig {
    /// Returns a configuration of `n_ctx` cells without a sliding window, with recurrent states for one sequence.
    pub fn new(n_ctx: usize) -> SessionConfig {
        SessionConfig {
            n_ctx,
            n_ctx_swa: 0,
            window: None,
            n_seq_max: 1,
            parts: 1,
            part_swa: usize::MAX,
            cell_unit: CellUnit::default(),
        }
    }

    /// Adds sliding-window layers with a cache of `n_ctx_swa` cells.
    #[must_use]
    pub const fn with_window(mut self, window: Window, n_ctx_swa: usize) -> SessionConfig {
        (self.window, self.n_ctx_swa) = (Some(window), n_ctx_swa);
        self
    }

    /// Sets the number of sequences with recurrent states.
    #[must_use]
    pub const fn with_sequences(mut self, n_seq_max: usize) -> SessionConfig {
        self.n_seq_max = n_seq_max;
        self
    }

    /// Divides caches into `parts` parts of at most `swa` cells in sliding-window layers. Sequence `s` uses part `s %
    /// parts`. If there are several parts, each consists of whole [blocks](tpc_ir::CELL_BLOCK) of cells.
    #[must_use]
    pub const fn with_parts(mut self, parts: usize, swa: usize) -> SessionConfig {
        (self.parts, self.part_swa) = (parts, swa);
        self
    }

    /// Sets the unit of the program's numbers of cells, and rounds the caches up to whole units. If there are several
    /// parts, each then consists of whole units.
    #[must_use]
    pub fn in_units(mut self, unit: CellUnit) -> SessionConfig {
        self.cell_unit = unit;
        let unit = self.unit();
        let parts = self.parts.max(1);
        let rounded = |n: usize| {
            let each = n.div_ceil(parts).checked_next_multiple_of(unit);
            each.and_then(|each| each.checked_mul(parts)).unwrap_or(n)
        };
        if unit > 1 {
            self.n_ctx = rounded(self.n_ctx);
            self.n_ctx_swa = rounded(self.n_ctx_swa);
        }
        self
    }

    pub(super) fn unit(&self) -> usize {
        usize::try_from(self.cell_unit.0)
            .unwrap_or(usize::MAX)
            .max(1)
    }

    /// Returns the maximum shape of batches of up to `tokens` tokens and `outputs` requested logits. Memory is
    /// allocated for this shape.
    pub fn batch_shape(&self, tokens: usize, outputs: usize) -> BatchShape {
        let n = |n: usize| n as u64;
        BatchShape {
            most: Bindings::default()
                .in_units(self.cell_unit.0)
                .with(Symbol::NTokens, n(tokens))
                .with(Symbol::NKv, n(self.n_ctx))
                .with(Symbol::NKvSwa, n(self.n_ctx_swa))
                .with(Symbol::NCtx, n(self.n_ctx))
                .with(Symbol::NCtxSwa, n(self.n_ctx_swa))
                .with(Symbol::NSeqs, n(self.n_seq_max.min(tokens)))
                .with(Symbol::NSeqTokens, n(tokens))
                .with(Symbol::NSeqMax, n(self.n_seq_max))
                .with(Symbol::NOutputs, n(outputs.min(tokens))),
        }
    }
}
