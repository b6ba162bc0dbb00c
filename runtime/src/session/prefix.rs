//! Copies of prefixes: the cells and recurrent states of a sequence's first tokens.
//!
//! A sequence that gets a prefix has the cells of a sequence that has read the tokens itself, and then the same bits.
//! This holds for sequences that are alone in their parts of the caches ([`SessionConfig::parts`]).
//!
//! The bytes of cells are grouped by state: all cells of the first state, then all cells of the second one.
//!
//! [`SessionConfig::parts`]: super::SessionConfig::parts

use std::ops::Range;

use tpc_ir::Window;

use super::Session;
use super::checkpoint::Checkpoint;
use super::kv_cells::KvCells;
use super::logical::{LogicalState, known_states};
use super::rewind::write_states;
use crate::error::ExecError;
use crate::executor::Executor;
use crate::states::CellKind;

/// The sizes of a prefix's parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrefixLayout {
    /// Bytes of a token's cells in caches without a window.
    pub full: usize,
    /// Bytes of a token's cells in sliding-window caches.
    pub windowed: usize,
    /// Bytes of a sequence's recurrent states.
    pub recurrent: usize,
    /// Window of the sliding-window caches; `None` without such caches.
    pub window: Option<Window>,
    /// Number of cells of a sequence in sliding-window caches.
    pub window_cells: usize,
}

impl PrefixLayout {
    /// Returns the first position whose cell in sliding-window caches the token at `len` or a later token can see.
    pub fn seen_from(&self, len: u64) -> u64 {
        match self.window {
            None => len,
            Some(Window::Sliding(n)) => (len + 1).saturating_sub(n).min(len),
            Some(Window::Chunks(n)) => len - len.checked_rem(n).unwrap_or(0),
        }
    }
}

/// The content of a prefix, in blocks of an equal number of tokens.
#[derive(Clone, Debug, Default)]
pub struct Prefix<'b> {
    /// Number of tokens per block.
    pub block: usize,
    /// Cells of each block in caches without a window.
    pub full: Vec<&'b [u8]>,
    /// Cells of the last blocks in sliding-window caches, in order of positions.
    pub windowed: Vec<&'b [u8]>,
    /// Recurrent states after the last block, if the model has such states.
    pub recurrent: Option<&'b [u8]>,
}

impl Prefix<'_> {
    /// Returns the number of tokens; `None` if a position does not fit.
    fn len(&self) -> Option<u32> {
        let len = self.full.len().checked_mul(self.block)?;
        u32::try_from(len).ok()
    }

    /// Checks the sizes. Returns the number of tokens.
    fn check(&self, layout: &PrefixLayout) -> Result<u32, String> {
        let len = self.len().ok_or("the prefix is too long")?;
        let cells = |blocks: &[&[u8]], each: usize| {
            let bytes = each.checked_mul(self.block);
            blocks.iter().all(|b| Some(b.len()) == bytes)
        };
        if !cells(&self.full, layout.full) || !cells(&self.windowed, layout.windowed) {
            return Err("the cells have another size".into());
        }
        if self.windowed.len() > self.full.len() {
            return Err("the sliding-window caches have more blocks".into());
        }
        if self.recurrent.map_or(0, <[u8]>::len) != layout.recurrent {
            return Err("the recurrent states have another size".into());
        }
        let from = self.windowed_from(layout, len);
        if u64::from(from) > layout.seen_from(len.into()) {
            return Err("later tokens see lost cells of the sliding-window caches".into());
        }
        Ok(len)
    }

    /// Returns the first position with a cell in sliding-window caches.
    fn windowed_from(&self, layout: &PrefixLayout, len: u32) -> u32 {
        let most = u32::try_from(layout.window_cells).unwrap_or(u32::MAX);
        let given = match layout.windowed {
            0 => len,
            _ => (self.windowed.len() * self.block) as u32,
        };
        len - given.min(most).min(len)
    }
}

fn bytes_of(states: &[LogicalState], kind: CellKind) -> usize {
    of_kind(states, kind).map(LogicalState::cell_bytes).sum()
}

fn of_kind(states: &[LogicalState], kind: CellKind) -> impl Iterator<Item = &LogicalState> {
    states.iter().filter(move |s| s.kind == kind)
}

impl<E: Executor + ?Sized> Session<E> {
    /// Returns the sizes of a prefix's parts; `None` if the session cannot copy prefixes.
    pub fn prefix_layout(&self) -> Option<PrefixLayout> {
        let states = known_states(&self.states).ok()?;
        let readable = states.iter().all(|s| s.check(&*self.executor).is_ok());
        if !readable || states.is_empty() {
            return None;
        }
        let windowed = bytes_of(states, CellKind::Windowed);
        let cells = self.cells.windowed.as_ref();
        Some(PrefixLayout {
            full: bytes_of(states, CellKind::Full),
            windowed,
            recurrent: bytes_of(states, CellKind::Sequence),
            window: self.config.window.filter(|_| windowed > 0),
            window_cells: cells.map_or(0, KvCells::part_len),
        })
    }

    /// Appends the bytes of a sequence's cells at these positions. Returns false, and appends nothing, in these cases:
    ///
    /// - caches have lost a cell;
    /// - the sequence shares its part of the caches, so a cell has another place;
    /// - a context shift or a session file has changed the cells.
    ///
    /// Draft blocks write their cells of a batch in [`Self::draft`]: read cells after the drafts.
    ///
    /// # Errors
    /// Returns [`ExecError::NoStates`] if the executor does not provide its states, and errors of the device.
    pub fn read_cells(
        &self,
        seq: u32,
        kind: CellKind,
        positions: Range<u64>,
        out: &mut Vec<u8>,
    ) -> Result<bool, ExecError> {
        let states = known_states(&self.states)?;
        let cells = match kind {
            CellKind::Full => Some(&self.cells.full),
            CellKind::Windowed => self.cells.windowed.as_ref(),
            CellKind::Sequence => None,
        };
        let Some(cells) = cells.filter(|_| self.is_computed(seq, positions.end)) else {
            return Ok(false);
        };
        let rows: Option<Vec<usize>> = positions.map(|pos| cells.own_row(seq, pos)).collect();
        let Some(rows) = rows else {
            return Ok(false);
        };
        let before = out.len();
        for state in of_kind(states, kind) {
            let at = out.len();
            out.resize(at + rows.len() * state.cell_bytes(), 0);
            if let Err(e) = state.read_all(&*self.executor, &rows, &mut out[at..]) {
                out.truncate(before);
                return Err(e);
            }
        }
        Ok(true)
    }

    /// Appends the bytes of a sequence's recurrent states after its last token. Returns false, and appends nothing, for
    /// a sequence without states.
    ///
    /// # Errors
    /// Returns [`ExecError::NoStates`] if the executor does not provide its states, and errors of the device.
    pub fn read_recurrent(&self, seq: u32, out: &mut Vec<u8>) -> Result<bool, ExecError> {
        let cell = self.cells.states.as_ref().and_then(|s| s.cell(seq));
        let Some(cell) = cell.filter(|_| self.is_computed(seq, self.next_position(seq))) else {
            return Ok(false);
        };
        let before = out.len();
        let read = self.read_states(cell, out);
        if read.is_err() {
            out.truncate(before);
        }
        read.map(|()| true)
    }

    /// Gives an empty sequence the tokens of a prefix. Recurrent states get a [checkpoint](Self::checkpoint) after the
    /// prefix.
    ///
    /// # Errors
    /// Returns [`ExecError::Prefix`] if the prefix does not fit the session or the sequence has tokens,
    /// [`ExecError::CacheFull`] or [`ExecError::StatesFull`] without enough free cells, and errors of the device. All
    /// sequences are then unchanged.
    pub fn restore_prefix(&mut self, seq: u32, prefix: &Prefix<'_>) -> Result<(), ExecError> {
        let refused = |what: &str| ExecError::Prefix {
            seq,
            what: what.to_owned(),
        };
        let layout = self.prefix_layout();
        let layout = layout.ok_or_else(|| refused("the executor does not provide its states"))?;
        if self.next_position(seq) > 0 {
            return Err(refused("the sequence is not empty"));
        }
        let len = prefix.check(&layout).map_err(|what| refused(&what))?;
        if len == 0 {
            return Ok(());
        }
        self.cells.begin();
        let written = self.write_prefix(seq, (len, &layout), prefix);
        if written.is_err() {
            self.cells.revert();
            return written;
        }
        self.checkpoints.retain(|c| c.seq != seq);
        self.shifted.retain(|s| s.0 != seq);
        if let Some(bytes) = prefix.recurrent {
            self.checkpoints.push(Checkpoint {
                seq,
                pos: len.into(),
                bytes: bytes.to_vec(),
            });
        }
        Ok(())
    }

    fn write_prefix(
        &mut self,
        seq: u32,
        (len, layout): (u32, &PrefixLayout),
        prefix: &Prefix<'_>,
    ) -> Result<(), ExecError> {
        let states = known_states(&self.states)?;
        let executor = &mut *self.executor;
        self.cells.full.place_prefix(seq, 0..len)?;
        let rows = self.cells.full.rows();
        let blocks = rows.chunks(prefix.block).zip(&prefix.full);
        for (rows, bytes) in blocks {
            write_block(
                states,
                CellKind::Full,
                executor,
                (rows, prefix.block),
                bytes,
            )?;
        }
        if let Some(cells) = &mut self.cells.windowed {
            let from = prefix.windowed_from(layout, len);
            cells.place_prefix(seq, from..len)?;
            // The first block may be cut. All later blocks are whole.
            let blocks = cells.rows().rchunks(prefix.block);
            for (rows, bytes) in blocks.zip(prefix.windowed.iter().rev()) {
                let block = (rows, prefix.block);
                write_block(states, CellKind::Windowed, executor, block, bytes)?;
            }
        }
        let Some(cells) = &mut self.cells.states else {
            return Ok(());
        };
        cells.place(&[seq])?;
        match (cells.cell(seq), prefix.recurrent) {
            (Some(cell), Some(bytes)) => write_states(states, executor, cell, bytes),
            _ => Ok(()),
        }
    }

    /// True if a sequence's cells before `end` have the bits of a computed text: no context shift and no session file
    /// changed them.
    fn is_computed(&self, seq: u32, end: u64) -> bool {
        !self.shifted.iter().any(|&(s, from)| s == seq && from < end)
    }
}

/// Writes the last cells of a block of `n` tokens into `rows`.
fn write_block<E: Executor + ?Sized>(
    states: &[LogicalState],
    kind: CellKind,
    executor: &mut E,
    (rows, n): (&[usize], usize),
    mut bytes: &[u8],
) -> Result<(), ExecError> {
    for state in of_kind(states, kind) {
        let each = state.cell_bytes();
        let (own, rest) = bytes.split_at(n * each);
        state.write_all(executor, rows, &own[(n - rows.len()) * each..])?;
        bytes = rest;
    }
    Ok(())
}
