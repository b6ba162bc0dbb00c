//! The cells of a session: which token each row of a cache holds, and which sequence each recurrent state.

use super::batch::TokenPos;
use super::config::SessionConfig;
use super::kv_cells::KvCells;
use super::sequences::{StateCell, StateCells};
use crate::error::ExecError;

/// The cells of the caches and of the recurrent states.
#[derive(Clone, Debug)]
pub(super) struct Cells {
    /// Caches without a window.
    pub(super) full: KvCells,
    /// Caches with a window; `None` when no layer has one.
    pub(super) windowed: Option<KvCells>,
    /// Recurrent states; `None` when the model has none.
    pub(super) states: Option<StateCells>,
}

/// The cells of a batch.
pub(super) struct Placed {
    /// Per token its row of the caches without a window.
    pub(super) rows: Vec<usize>,
    /// Per token its row of the caches with a window.
    pub(super) rows_windowed: Option<Vec<usize>>,
    /// Per sequence its recurrent state.
    pub(super) states: Vec<StateCell>,
}

impl Cells {
    /// Empty cells.
    pub(super) fn new(config: &SessionConfig, recurrent: bool) -> Cells {
        Cells {
            full: KvCells::new(config.n_ctx, None),
            windowed: config
                .window
                .map(|w| KvCells::new(config.n_ctx_swa, Some(w))),
            states: recurrent.then(|| StateCells::new(config.n_seq_max)),
        }
    }

    /// Assigns cells to the tokens and sequences of a batch.
    ///
    /// # Errors
    /// [`ExecError::CacheFull`], [`ExecError::StatesFull`], or [`ExecError::BadBatch`] when positions do not rise. The
    /// cells may be half assigned then: drop them.
    pub(super) fn place(&mut self, tokens: &[TokenPos], seqs: &[u32]) -> Result<Placed, ExecError> {
        Ok(Placed {
            rows: self.full.place(tokens)?,
            rows_windowed: match &mut self.windowed {
                Some(cells) => Some(cells.place(tokens)?),
                None => None,
            },
            states: match &mut self.states {
                Some(states) => states.place(seqs)?,
                None => Vec::new(),
            },
        })
    }

    /// Frees the cells of a sequence.
    pub(super) fn remove_sequence(&mut self, seq: u32) {
        self.full.remove_sequence(seq);
        if let Some(cells) = &mut self.windowed {
            cells.remove_sequence(seq);
        }
        if let Some(states) = &mut self.states {
            states.remove_sequence(seq);
        }
    }

    /// Frees all cells.
    pub(super) fn clear(&mut self) {
        self.full.clear();
        if let Some(cells) = &mut self.windowed {
            cells.clear();
        }
        if let Some(states) = &mut self.states {
            states.clear();
        }
    }
}
