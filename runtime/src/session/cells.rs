use tpc_ir::Window;

use super::batch::TokenPos;
use super::config::SessionConfig;
use super::kv_cells::KvCells;
use super::sequences::StateCells;
use crate::error::ExecError;

#[derive(Clone, Debug)]
pub(super) struct Cells {
    pub(super) full: KvCells,
    pub(super) windowed: Option<KvCells>,
    pub(super) states: Option<StateCells>,
}

impl Cells {
    pub(super) fn new(config: &SessionConfig, recurrent: bool) -> Cells {
        let cells = |n: usize, window: Option<Window>, most: usize| {
            KvCells::in_units(n, window, (config.parts, most), config.unit())
        };
        Cells {
            full: cells(config.n_ctx, None, usize::MAX),
            windowed: (config.window).map(|w| cells(config.n_ctx_swa, Some(w), config.part_swa)),
            states: recurrent.then(|| StateCells::new(config.n_seq_max)),
        }
    }

    pub(super) fn begin(&mut self) {
        self.full.begin();
        if let Some(cells) = &mut self.windowed {
            cells.begin();
        }
        if let Some(states) = &mut self.states {
            states.begin();
        }
    }

    pub(super) fn revert(&mut self) {
        self.full.revert();
        if let Some(cells) = &mut self.windowed {
            cells.revert();
        }
        if let Some(states) = &mut self.states {
            states.revert();
        }
    }

    /// Assigns cells to a batch's tokens and sequences. After an error, some cells may be assigned: call
    /// [`Self::revert`].
    pub(super) fn place(&mut self, tokens: &[TokenPos], seqs: &[u32]) -> Result<(), ExecError> {
        self.full.place(tokens)?;
        if let Some(cells) = &mut self.windowed {
            cells.place(tokens)?;
        }
        match &mut self.states {
            Some(states) => states.place(seqs),
            None => Ok(()),
        }
    }

    pub(super) fn remove_sequence(&mut self, seq: u32) {
        self.full.remove_sequence(seq);
        if let Some(cells) = &mut self.windowed {
            cells.remove_sequence(seq);
        }
        if let Some(states) = &mut self.states {
            states.remove_sequence(seq);
        }
    }

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
