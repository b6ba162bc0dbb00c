use std::collections::BTreeMap;
use std::ops::Range;

use tpc_ir::Window;

use super::batch::TokenPos;
use super::parts::Parts;
use crate::error::ExecError;
use crate::executor::MaskValues;
use crate::slot::Slot;

/// The cells of a KV cache with their tokens.
///
/// A token sees the earlier tokens of its sequence that the window, if any, [reaches](Window::reaches). A cell is
/// reused once no later token can see its token.
///
/// Cells may be divided into `Parts`, each for its own sequences. A sequence's cells then have the same order and the
/// same blocks as when the sequence runs alone.
///
/// [`Self::begin`] begins a transaction, and [`Self::revert`] undoes its placements. Placement does not allocate once
/// the lists are large enough.
#[derive(Clone, Debug)]
pub struct KvCells {
    len: usize,
    /// Batches attend to whole units of this number of cells.
    unit: usize,
    /// All cells up to the last one in use.
    cells: Vec<Option<TokenPos>>,
    window: Option<Window>,
    parts: Parts,
    /// For caches with a window: per part, the cell after the last assigned cell, counted within the part. The search
    /// for free cells starts there. A part is thus a ring buffer: cells stay in the order of positions as long as
    /// possible, for any division into batches.
    heads: Vec<usize>,
    sequences: Vec<Sequence>,
    after: Vec<Sequence>,
    rows: Vec<usize>,
    undo: Vec<Undo>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sequence {
    seq: u32,
    next: u64,
    /// The first position whose token may still read the cache: the first token in the batch, or else `next`.
    horizon: u64,
    /// The position after the last one whose cell was reused.
    lost: u64,
}

#[derive(Clone, Copy, Debug)]
enum Undo {
    Cell(usize, Option<TokenPos>),
    Extent(usize),
    Head(usize, usize),
    Sequence(Sequence),
    NoSequence(u32),
}

/// Maximum number of cells with lists allocated at full size. Longer lists grow.
const RESERVED: usize = 1 << 22;

impl KvCells {
    /// Returns a cache of `n_cells` empty cells, shared by all sequences.
    pub fn new(n_cells: usize, window: Option<Window>) -> KvCells {
        KvCells::with_parts(n_cells, window, (1, usize::MAX))
    }

    /// Returns a cache of `n_cells` empty cells in `parts` parts of at most `most` cells. Sequence `s` uses part `s %
    /// parts`.
    pub fn with_parts(
        n_cells: usize,
        window: Option<Window>,
        (parts, most): (usize, usize),
    ) -> KvCells {
        KvCells::in_units(n_cells, window, (parts, most), 1)
    }

    /// Returns a cache as [`Self::with_parts`] whose cells are counted in units of `unit` cells. If there are several
    /// parts, each has whole units.
    pub fn in_units(
        n_cells: usize,
        window: Option<Window>,
        parts: (usize, usize),
        unit: usize,
    ) -> KvCells {
        let parts = Parts::new(n_cells, parts, unit);
        KvCells {
            len: n_cells,
            unit: unit.max(1),
            cells: Vec::with_capacity(n_cells.min(RESERVED)),
            window,
            heads: vec![0; parts.count()],
            parts,
            sequences: Vec::new(),
            after: Vec::new(),
            rows: Vec::new(),
            undo: Vec::new(),
        }
    }

    /// Returns the number of cells.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// True if the cache has zero cells.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the number of cells that a batch attends to: the cells up to the last one in use, in whole units.
    pub const fn n_kv(&self) -> usize {
        self.cells.len().next_multiple_of(self.unit)
    }

    /// Returns the cells up to the last one in use.
    pub(super) fn held(&self) -> &[Option<TokenPos>] {
        &self.cells
    }

    /// Returns the first part's head: the search for free cells starts at this cell.
    pub(super) fn head(&self) -> usize {
        self.heads.first().copied().unwrap_or(0)
    }

    /// Returns each sequence with its next position and the position after its last lost one.
    pub(super) fn saved_sequences(&self) -> Vec<(u32, u64, u64)> {
        let sequences = self.sequences.iter();
        sequences.map(|s| (s.seq, s.next, s.lost)).collect()
    }

    /// Returns a cache of this form with these cells and sequences; `None` if they are inconsistent.
    pub(super) fn restored(
        &self,
        sequences: &[(u32, u64, u64)],
        head: usize,
        cells: Vec<Option<TokenPos>>,
    ) -> Option<KvCells> {
        let next: BTreeMap<u32, u64> = sequences.iter().map(|s| (s.0, s.1)).collect();
        let mut held: Vec<(u32, u32)> = cells.iter().flatten().map(|c| (c.seq, c.pos)).collect();
        let count = held.len();
        held.sort_unstable();
        held.dedup();
        let distinct = held.len() == count && next.len() == sequences.len();
        let known = held
            .iter()
            .all(|&(seq, pos)| next.get(&seq).is_some_and(|next| u64::from(pos) < *next));
        let sizes = sequences
            .iter()
            .all(|&(_, next, lost)| next <= 1 << 32 && lost <= next);
        let fits = cells.len() <= self.len && (head == 0 || head < self.parts.len());
        if !(distinct && known && sizes && fits && !matches!(cells.last(), Some(None))) {
            return None;
        }
        let parts = (self.parts.count(), self.parts.len());
        let mut out = KvCells::in_units(self.len, self.window, parts, self.unit);
        out.cells.extend(cells);
        if self.window.is_some() {
            match self.parts.count() {
                1 => out.heads[0] = head,
                _ => out.find_heads(),
            }
        }
        let sequence = |&(seq, next, lost): &(u32, u64, u64)| Sequence {
            seq,
            next,
            horizon: next,
            lost,
        };
        out.sequences = sequences.iter().map(sequence).collect();
        Some(out)
    }

    fn find_heads(&mut self) {
        let mut last = vec![None; self.parts.count()];
        for (row, cell) in self.cells.iter().enumerate() {
            let Some(cell) = cell else { continue };
            let (part, at) = self.parts.place_of(row);
            if last[part].is_none_or(|(pos, _)| pos < cell.pos) {
                last[part] = Some((cell.pos, at));
            }
        }
        for (head, last) in self.heads.iter_mut().zip(last) {
            *head = last.map_or(0, |(_, at)| (at + 1) % self.parts.len().max(1));
        }
    }

    pub(super) fn has_lost(&self, seq: u32) -> bool {
        self.sequences.iter().any(|s| s.seq == seq && s.lost > 0)
    }

    /// Returns the cells of the last placed tokens, in order.
    pub fn rows(&self) -> &[usize] {
        &self.rows
    }

    /// Returns a sequence's first position not yet decoded.
    pub fn next(&self, seq: u32) -> u64 {
        let known = self.sequences.iter().find(|s| s.seq == seq);
        known.map_or(0, |s| s.next)
    }

    /// Begins a transaction; [`Self::revert`] undoes later placements.
    pub fn begin(&mut self) {
        self.undo.clear();
    }

    /// Undoes the placements since the transaction began.
    pub fn revert(&mut self) {
        while let Some(change) = self.undo.pop() {
            match change {
                Undo::Cell(row, held) => self.cells[row] = held,
                Undo::Extent(used) => self.cells.truncate(used),
                Undo::Head(part, head) => self.heads[part] = head,
                Undo::Sequence(was) => {
                    if let Some(s) = self.sequences.iter_mut().find(|s| s.seq == was.seq) {
                        *s = was;
                    }
                }
                Undo::NoSequence(seq) => self.sequences.retain(|s| s.seq != seq),
            }
        }
    }

    /// Assigns a cell to each token ([`Self::rows`] returns them): the lowest free cells, or with a window the free
    /// cells after the head. A cell is free if it is empty, or if neither this batch nor a later token can see its
    /// token.
    ///
    /// # Errors
    /// Returns [`ExecError::CacheFull`] with too few free cells, [`ExecError::BadBatch`] if positions do not increase.
    /// The cache is unchanged on error.
    pub fn place(&mut self, tokens: &[TokenPos]) -> Result<(), ExecError> {
        self.advance(tokens)?;
        let (cells, window, after) = (&self.cells, self.window, &self.after);
        let unseen = |c: &TokenPos| {
            window.is_some_and(|w| {
                let known = after.iter().find(|s| s.seq == c.seq);
                let from = known.map_or(0, |s| s.horizon);
                !w.reaches(from, c.pos.into())
            })
        };
        let held = |i: usize| cells.get(i).and_then(Option::as_ref);
        let (parts, heads) = (self.parts, &self.heads);
        self.rows.clear();
        self.rows.resize(tokens.len(), 0);
        for (part, &head) in heads.iter().enumerate() {
            let mut free = (head..parts.len())
                .chain(0..head)
                .map(|at| parts.row(part, at))
                .filter(|&row| held(row).is_none_or(unseen));
            let own = || tokens.iter().filter(|t| parts.of(t.seq) == part);
            let rows = self.rows.iter_mut().zip(tokens);
            let rows = rows.filter(|(_, t)| parts.of(t.seq) == part);
            for (found, (row, _)) in rows.enumerate() {
                let Some(next) = free.next() else {
                    return Err(ExecError::CacheFull {
                        needed: own().count(),
                        free: found,
                        cells: parts.len(),
                        window: window.map(Window::tokens),
                    });
                };
                *row = next;
            }
        }
        self.store(tokens);
        Ok(())
    }

    /// Returns the cell that has a sequence's token at `pos` if the sequence is alone in its part. `None` if another
    /// token is there.
    pub(super) fn own_row(&self, seq: u32, pos: u64) -> Option<usize> {
        let len = self.parts.len() as u64;
        let at = match self.window {
            Some(_) => pos.checked_rem(len)?,
            None => pos,
        };
        let at = usize::try_from(at)
            .ok()
            .filter(|at| *at < self.parts.len())?;
        let row = self.parts.row(self.parts.of(seq), at);
        let pos = u32::try_from(pos).ok()?;
        let held = self.cells.get(row).copied().flatten();
        (held == Some(TokenPos { pos, seq })).then_some(row)
    }

    /// Returns the number of cells of a part.
    pub(super) const fn part_len(&self) -> usize {
        self.parts.len()
    }

    /// Assigns cells to the tokens at `positions` of an empty sequence ([`Self::rows`] returns the cells), as if the
    /// sequence had read all earlier tokens too. After an error, call [`Self::revert`].
    ///
    /// # Errors
    /// Returns [`ExecError::CacheFull`] with too few free cells.
    pub(super) fn place_prefix(
        &mut self,
        seq: u32,
        positions: Range<u32>,
    ) -> Result<(), ExecError> {
        let (part, len) = (self.parts.of(seq), self.parts.len());
        if self.window.is_some() && len > 0 && self.is_empty_part(part) {
            self.undo.push(Undo::Head(part, self.heads[part]));
            self.heads[part] = positions.start as usize % len;
        }
        let tokens: Vec<TokenPos> = positions.clone().map(|pos| TokenPos { pos, seq }).collect();
        self.place(&tokens)?;
        if !self.sequences.iter().any(|s| s.seq == seq) {
            self.undo.push(Undo::NoSequence(seq));
            let next = u64::from(positions.end);
            self.sequences.push(Sequence {
                seq,
                next,
                horizon: next,
                lost: 0,
            });
        }
        for s in self.sequences.iter_mut().filter(|s| s.seq == seq) {
            s.lost = s.lost.max(positions.start.into());
        }
        Ok(())
    }

    fn is_empty_part(&self, part: usize) -> bool {
        let held = |(row, cell): (usize, &Option<TokenPos>)| {
            cell.is_some() && self.parts.place_of(row).0 == part
        };
        !self.cells.iter().enumerate().any(held)
    }

    fn advance(&mut self, tokens: &[TokenPos]) -> Result<(), ExecError> {
        self.after.clear();
        self.after.extend_from_slice(&self.sequences);
        for s in &mut self.after {
            s.horizon = s.next;
        }
        let known = self.after.len();
        for t in tokens {
            let pos = u64::from(t.pos);
            let Some(i) = self.after.iter().position(|s| s.seq == t.seq) else {
                self.after.push(Sequence {
                    seq: t.seq,
                    next: pos + 1,
                    horizon: pos,
                    lost: 0,
                });
                continue;
            };
            let s = &mut self.after[i];
            if pos < s.next {
                return Err(ExecError::BadBatch {
                    what: format!(
                        "position {pos} of sequence {} comes after position {}",
                        t.seq,
                        s.next - 1
                    ),
                });
            }
            // The sequence's first token in the batch.
            if self.sequences.get(i).is_some_and(|was| was.next == s.next) && i < known {
                s.horizon = pos;
            }
            s.next = pos + 1;
        }
        Ok(())
    }

    fn store(&mut self, tokens: &[TokenPos]) {
        self.undo.push(Undo::Extent(self.cells.len()));
        let used = self.rows.iter().map(|row| row + 1).max().unwrap_or(0);
        self.cells.resize(self.cells.len().max(used), None);
        for (&row, &t) in self.rows.iter().zip(tokens) {
            let lost = self.cells[row].replace(t);
            self.undo.push(Undo::Cell(row, lost));
            let Some(lost) = lost else { continue };
            if let Some(s) = self.after.iter_mut().find(|s| s.seq == lost.seq) {
                s.lost = s.lost.max(u64::from(lost.pos) + 1);
            }
        }
        if self.window.is_some() {
            for (i, &row) in self.rows.iter().enumerate() {
                let (part, at) = self.parts.place_of(row);
                // Only a part's last token moves its head.
                if !self.rows[i + 1..]
                    .iter()
                    .any(|&r| self.parts.place_of(r).0 == part)
                {
                    self.undo.push(Undo::Head(part, self.heads[part]));
                    self.heads[part] = (at + 1) % self.parts.len();
                }
            }
        }
        for (i, s) in self.after.iter().enumerate() {
            match self.sequences.get(i) {
                Some(was) if was != s => self.undo.push(Undo::Sequence(*was)),
                Some(_) => {}
                None => self.undo.push(Undo::NoSequence(s.seq)),
            }
        }
        std::mem::swap(&mut self.sequences, &mut self.after);
    }

    /// Returns the distance from a token at `q` to the token in `cell`, if `q` attends to it: positions up to `q` of
    /// the same sequence, within the window.
    fn sees(&self, q: TokenPos, cell: Option<TokenPos>) -> Option<u32> {
        let k = cell?;
        let distance = q.pos.checked_sub(k.pos)?;
        let within = |w: Window| w.reaches(q.pos.into(), k.pos.into());
        let within = self.window.is_none_or(within);
        (k.seq == q.seq && within).then_some(distance)
    }

    /// Writes the mask of these placed tokens over the first [`Self::n_kv`] cells, `[n_kv, n_tokens]`: −∞ if a token
    /// does not attend to a cell.
    ///
    /// # Errors
    /// Returns the errors of the [`Slot`].
    pub fn mask(
        &self,
        tokens: &[TokenPos],
        values: MaskValues,
        to: Slot<'_>,
    ) -> Result<(), ExecError> {
        to.rows([self.n_kv(), tokens.len()], |i, row| {
            row[self.cells.len()..].fill(f32::NEG_INFINITY);
            for (to, &cell) in row.iter_mut().zip(&self.cells) {
                *to = match (self.sees(tokens[i], cell), values) {
                    (None, _) => f32::NEG_INFINITY,
                    (Some(_), MaskValues::Zero) => 0.0,
                    // Contexts are shorter than 2²⁴ tokens, so f32 is exact.
                    (Some(distance), MaskValues::Distance) => -(distance as f32),
                };
            }
        })
    }

    /// True if a sequence can go back to its first `pos` positions. With a window, the cache must still hold all tokens
    /// that the token at `pos` sees.
    pub fn can_truncate(&self, seq: u32, pos: u64) -> bool {
        let known = self.sequences.iter().find(|s| s.seq == seq);
        known.is_none_or(|s| {
            let sees_lost = |w: Window| s.lost > pos || w.reaches(pos, s.lost - 1);
            pos == 0 || s.lost == 0 || pos >= s.next || !self.window.is_some_and(sees_lost)
        })
    }

    /// Frees a sequence's cells from position `pos` on.
    pub fn truncate(&mut self, seq: u32, pos: u64) {
        let mut first: Option<(u32, usize)> = None;
        for (row, cell) in self.cells.iter_mut().enumerate() {
            if let Some(c) = *cell
                && c.seq == seq
                && u64::from(c.pos) >= pos
            {
                *cell = None;
                first = Some(first.map_or((c.pos, row), |f| f.min((c.pos, row))));
            }
        }
        if let Some((_, row)) = first.filter(|_| self.window.is_some()) {
            let (part, at) = self.parts.place_of(row);
            self.heads[part] = at;
        }
        if pos == 0 {
            self.sequences.retain(|s| s.seq != seq);
            // An empty part restarts at its first cell, like an empty cache.
            let part = self.parts.of(seq);
            if self.is_empty_part(part) {
                self.heads[part] = 0;
            }
        }
        for s in self.sequences.iter_mut().filter(|s| s.seq == seq) {
            s.next = s.next.min(pos);
            s.lost = s.lost.min(pos);
        }
        self.shrink();
    }

    /// Frees the cells of `n` positions of a sequence from `from` on. Later tokens move to lower positions.
    pub fn shift(&mut self, seq: u32, from: u64, n: u64) {
        for cell in &mut self.cells {
            let Some(c) = cell.as_mut().filter(|c| c.seq == seq) else {
                continue;
            };
            let pos = u64::from(c.pos);
            if pos >= from + n {
                c.pos = (pos - n) as u32;
            } else if pos >= from {
                *cell = None;
            }
        }
        for s in self.sequences.iter_mut().filter(|s| s.seq == seq) {
            let moved = |p: u64| {
                if p <= from {
                    p
                } else {
                    p.saturating_sub(n).max(from)
                }
            };
            s.next = moved(s.next);
            s.lost = moved(s.lost);
        }
        self.shrink();
    }

    fn shrink(&mut self) {
        let used = self.cells.iter().rposition(Option::is_some);
        self.cells.truncate(used.map_or(0, |i| i + 1));
    }

    /// Frees a sequence's cells. The sequence may restart at position 0.
    pub fn remove_sequence(&mut self, seq: u32) {
        self.truncate(seq, 0);
    }

    /// Frees all cells.
    pub fn clear(&mut self) {
        self.cells.clear();
        self.heads.fill(0);
        self.sequences.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slot::SlotMemory;
    use crate::tensor::Tensor;

    fn keys(seq: u32, positions: std::ops::Range<u32>) -> Vec<TokenPos> {
        positions.map(|pos| TokenPos { pos, seq }).collect()
    }

    fn place(cells: &mut KvCells, tokens: &[TokenPos]) -> Result<Vec<usize>, ExecError> {
        cells.place(tokens).map(|()| cells.rows().to_vec())
    }

    fn mask(cells: &KvCells, tokens: &[TokenPos], values: MaskValues) -> Tensor {
        let mut out = None;
        let dims = [cells.n_kv(), tokens.len(), 1, 1];
        let to = Slot::new(dims, SlotMemory::Tensor(&mut out)).expect("a tensor");
        cells.mask(tokens, values, to).expect("small");
        out.expect("written")
    }

    fn picture(cells: &KvCells, tokens: &[TokenPos]) -> Vec<String> {
        let mask = mask(cells, tokens, MaskValues::Zero);
        let n = mask.dims()[0];
        mask.reals()
            .expect("real")
            .chunks(n.max(1))
            .map(|row| {
                row.iter()
                    .map(|&x| if x == 0.0 { '.' } else { '-' })
                    .collect()
            })
            .collect()
    }

    #[test]
    fn a_sequence_fills_cells_in_order_and_sees_its_past() {
        let mut cells = KvCells::new(8, None);
        let prompt = keys(0, 0..3);
        assert_eq!(place(&mut cells, &prompt), Ok(vec![0, 1, 2]));
        assert_eq!(picture(&cells, &prompt), [".--", "..-", "..."]);
        let next = keys(0, 3..4);
        assert_eq!(place(&mut cells, &next), Ok(vec![3]));
        assert_eq!(picture(&cells, &next), ["...."]);
        assert_eq!(cells.n_kv(), 4);
    }

    #[test]
    fn a_batch_attends_to_whole_units() {
        let mut cells = KvCells::in_units(12, None, (1, usize::MAX), 4);
        assert_eq!(cells.n_kv(), 0);
        let prompt = keys(0, 0..3);
        assert_eq!(place(&mut cells, &prompt), Ok(vec![0, 1, 2]));
        assert_eq!(picture(&cells, &prompt), [".---", "..--", "...-"]);
        let next = keys(0, 3..5);
        assert_eq!(place(&mut cells, &next), Ok(vec![3, 4]));
        assert_eq!(picture(&cells, &next), ["....----", ".....---"]);
        assert_eq!((cells.n_kv(), cells.held().len()), (8, 5));
        let sequences = cells.saved_sequences();
        let held = cells.held().to_vec();
        let restored = cells.restored(&sequences, 0, held).expect("its own");
        assert_eq!(restored.n_kv(), 8);
    }

    #[test]
    fn sequences_do_not_see_each_other() {
        let mut cells = KvCells::new(8, None);
        let both = [keys(0, 0..2), keys(7, 0..2)].concat();
        assert_eq!(place(&mut cells, &both), Ok(vec![0, 1, 2, 3]));
        assert_eq!(picture(&cells, &both), [".---", "..--", "--.-", "--.."]);
        cells.remove_sequence(0);
        assert_eq!(place(&mut cells, &keys(3, 0..1)), Ok(vec![0]));
        assert_eq!(place(&mut cells, &keys(7, 2..3)), Ok(vec![1]));
        assert_eq!(picture(&cells, &keys(7, 2..3)), ["-..."]);
        cells.remove_sequence(7);
        assert_eq!(cells.n_kv(), 1);
    }

    #[test]
    fn a_window_reuses_the_cells_it_has_passed() {
        let mut cells = KvCells::new(5, Some(Window::Sliding(3)));
        assert_eq!(place(&mut cells, &keys(0, 0..4)), Ok(vec![0, 1, 2, 3]));
        assert_eq!(place(&mut cells, &keys(0, 4..5)), Ok(vec![4]));
        assert_eq!(picture(&cells, &keys(0, 4..5)), ["--..."]);
        assert_eq!(place(&mut cells, &keys(0, 5..7)), Ok(vec![0, 1]));
        assert_eq!(picture(&cells, &keys(0, 5..7)), [".--..", "..--."]);
        assert_eq!(cells.n_kv(), 5);
    }

    #[test]
    fn chunks_free_their_cells_together() {
        let mut cells = KvCells::new(4, Some(Window::Chunks(3)));
        assert_eq!(place(&mut cells, &keys(0, 0..4)), Ok(vec![0, 1, 2, 3]));
        assert_eq!(
            picture(&cells, &keys(0, 0..4)),
            [".---", "..--", "...-", "---."]
        );
        assert_eq!(place(&mut cells, &keys(0, 4..6)), Ok(vec![0, 1]));
        assert_eq!(picture(&cells, &keys(0, 4..6)), [".--.", "..-."]);
    }

    #[test]
    fn a_cell_that_the_first_token_of_a_batch_sees_is_not_reused_by_the_last() {
        let mut cells = KvCells::new(4, Some(Window::Sliding(3)));
        place(&mut cells, &keys(0, 0..3)).expect("empty");
        // Token 3 needs positions 1 and 2, so only cells 0 and 3 are free.
        let full = place(&mut cells, &keys(0, 3..6)).expect_err("three tokens");
        assert_eq!(full.code(), "TPC0514");
        assert_eq!(place(&mut cells, &keys(0, 3..5)), Ok(vec![3, 0]));
    }

    #[test]
    fn a_waiting_sequence_keeps_what_its_next_token_sees() {
        let mut cells = KvCells::new(4, Some(Window::Sliding(2)));
        place(&mut cells, &keys(1, 0..3)).expect("empty");
        assert_eq!(place(&mut cells, &keys(2, 0..3)), Ok(vec![3, 0, 1]));
        assert_eq!(place(&mut cells, &keys(1, 3..4)), Ok(vec![3]));
        assert_eq!(picture(&cells, &keys(1, 3..4)), ["--.."]);
    }

    #[test]
    fn positions_must_rise() {
        let mut cells = KvCells::new(8, None);
        place(&mut cells, &keys(0, 0..3)).expect("empty");
        let state = |c: &KvCells| (c.cells.clone(), c.sequences.clone(), c.heads.clone());
        let before = state(&cells);
        assert_eq!(
            place(&mut cells, &keys(0, 2..3)).expect_err("again").code(),
            "TPC0515"
        );
        let twice = [keys(0, 4..5), keys(0, 4..5)].concat();
        assert_eq!(
            place(&mut cells, &twice).expect_err("twice").code(),
            "TPC0515"
        );
        assert_eq!(
            place(&mut cells, &keys(0, 3..9)).expect_err("full").code(),
            "TPC0514"
        );
        assert_eq!(state(&cells), before);
        cells.clear();
        assert_eq!(cells.n_kv(), 0);
        assert_eq!(place(&mut cells, &keys(0, 0..8)).expect("all").len(), 8);
    }

    #[test]
    fn distances_for_alibi() {
        let mut cells = KvCells::new(4, None);
        let tokens = keys(0, 0..3);
        place(&mut cells, &tokens).expect("empty");
        let mask = mask(&cells, &tokens[1..], MaskValues::Distance);
        let none = f64::NEG_INFINITY;
        assert_eq!(
            *mask.reals().expect("real"),
            [-1.0, 0.0, none, -2.0, -1.0, 0.0]
        );
    }

    #[test]
    fn a_transaction_is_taken_back() {
        let mut cells = KvCells::new(5, Some(Window::Sliding(3)));
        place(&mut cells, &keys(0, 0..4)).expect("empty");
        let state = |c: &KvCells| (c.cells.clone(), c.sequences.clone(), c.heads.clone());
        let before = state(&cells);
        cells.begin();
        place(&mut cells, &keys(0, 4..6)).expect("free");
        place(&mut cells, &keys(3, 0..1)).expect("free");
        cells.revert();
        assert_eq!(state(&cells), before);
    }

    #[test]
    fn a_sequence_goes_back() {
        let mut cells = KvCells::new(8, None);
        place(&mut cells, &keys(0, 0..5)).expect("empty");
        place(&mut cells, &keys(1, 0..2)).expect("empty");
        cells.truncate(0, 3);
        assert_eq!((cells.next(0), cells.next(1)), (3, 2));
        assert_eq!(place(&mut cells, &keys(0, 3..6)), Ok(vec![3, 4, 7]));
        assert_eq!(picture(&cells, &keys(0, 4..5)), [".....---"]);
    }

    #[test]
    fn a_window_does_not_go_back_to_what_it_has_lost() {
        let mut cells = KvCells::new(5, Some(Window::Sliding(3)));
        place(&mut cells, &keys(0, 0..5)).expect("empty");
        assert!(cells.can_truncate(0, 1), "all is there");
        place(&mut cells, &keys(0, 5..7)).expect("positions 0 and 1 are unseen");
        // Positions 2 to 6 are left: the token at 4 sees 2, the token at 3 would see 1.
        assert!(cells.can_truncate(0, 4) && !cells.can_truncate(0, 3));
        assert!(cells.can_truncate(0, 0) && cells.can_truncate(0, 9));
        cells.truncate(0, 5);
        assert_eq!(place(&mut cells, &keys(0, 5..6)), Ok(vec![0]));
        assert_eq!(picture(&cells, &keys(0, 5..6)), [".--.."]);
    }

    #[test]
    fn tokens_move_up_where_others_go() {
        let mut cells = KvCells::new(6, None);
        place(&mut cells, &keys(0, 0..6)).expect("empty");
        cells.shift(0, 1, 3);
        assert_eq!(cells.next(0), 3);
        assert_eq!(place(&mut cells, &keys(0, 3..5)), Ok(vec![1, 2]));
        let held: Vec<Option<u32>> = cells.held().iter().map(|c| c.map(|c| c.pos)).collect();
        assert_eq!(held, [Some(0), Some(3), Some(4), None, Some(1), Some(2)]);
        assert_eq!(picture(&cells, &keys(0, 3..4)), ["..--.."]);
    }

    struct Both {
        alone: KvCells,
        together: KvCells,
        read: u32,
    }

    impl Both {
        fn new(window: Option<Window>) -> Both {
            Both {
                alone: KvCells::with_parts(128, window, (1, 96)),
                together: KvCells::with_parts(3 * 128, window, (3, 96)),
                read: 0,
            }
        }

        fn read(&mut self, n: u32, others: &[TokenPos]) {
            let own = keys(1, self.read..self.read + n);
            let wanted = place(&mut self.alone, &own).expect("there is room");
            let mixed: Vec<TokenPos> = others.iter().chain(&own).copied().collect();
            let found = place(&mut self.together, &mixed).expect("there is room");
            let parts = self.together.parts;
            for (row, t) in found.iter().zip(&mixed) {
                assert_eq!(parts.place_of(*row).0, t.seq as usize);
            }
            let own: Vec<usize> = found[others.len()..]
                .iter()
                .map(|&row| parts.place_of(row).1)
                .collect();
            assert_eq!(own, wanted, "after {} tokens", self.read);
            self.read += n;
        }
    }

    #[test]
    fn a_sequence_has_the_cells_in_its_part_that_it_has_alone() {
        for window in [None, Some(Window::Sliding(40))] {
            let mut both = Both::new(window);
            both.read(30, &keys(0, 0..5));
            both.read(1, &keys(2, 0..50));
            for i in 0..40 {
                both.read(1, &keys(0, 5 + i..6 + i));
            }
            for cells in [&mut both.alone, &mut both.together] {
                cells.truncate(1, 60);
            }
            both.read = 60;
            both.read(20, &[]);
            let held = both.together.held().to_vec();
            let sequences = both.together.saved_sequences();
            let restored = both.together.restored(&sequences, 0, held);
            both.together = restored.expect("they are its own");
            both.read(6, &[]);
            if window.is_some() {
                (0..30).for_each(|_| both.read(3, &[]));
            } else {
                let full = place(&mut both.together, &keys(1, 86..100));
                assert_eq!(full.expect_err("its part is full").code(), "TPC0514");
            }
            both.together.remove_sequence(1);
            both.alone = KvCells::with_parts(128, window, (1, 96));
            both.read = 0;
            both.read(50, &[]);
        }
    }

    #[test]
    fn a_prefix_has_the_cells_of_a_computed_text() {
        const LEN: u32 = 150;
        for window in [
            None,
            Some(Window::Sliding(40)),
            Some(Window::Chunks(32)),
            Some(Window::Chunks(48)),
        ] {
            for (chunk, kept) in [(1, 64), (8, 64), (17, 41), (25, 64)] {
                let most = if window.is_some() { 64 } else { 192 };
                let new = || KvCells::with_parts(3 * 192, window, (3, most));
                let (mut computed, mut copied) = (new(), new());
                let text = keys(1, 0..LEN);
                for part in text.chunks(chunk) {
                    place(&mut computed, part).expect("there is room");
                }
                place(&mut copied, &keys(2, 0..20)).expect("there is room");
                let from = match window {
                    Some(_) => LEN - kept,
                    None => 0,
                };
                copied.place_prefix(1, from..LEN).expect("there is room");
                let rows: Vec<usize> = copied.rows().to_vec();
                let own = |cells: &KvCells| -> Vec<Option<usize>> {
                    let own = (from..LEN).map(|pos| cells.own_row(1, pos.into()));
                    own.collect()
                };
                let expected: Vec<Option<usize>> = rows.iter().copied().map(Some).collect();
                assert_eq!(own(&copied), expected);
                assert_eq!(own(&computed), expected, "{window:?} in chunks of {chunk}");
                assert_eq!(copied.next(1), computed.next(1));
                assert_eq!(copied.heads[1], computed.heads[1]);
                if kept == 64 {
                    assert_eq!(
                        copied.saved_sequences().pop(),
                        computed.saved_sequences().pop()
                    );
                }
                for cells in [&mut computed, &mut copied] {
                    place(cells, &keys(1, LEN..LEN + 7)).expect("there is room");
                    assert!(cells.can_truncate(1, u64::from(LEN) + 2));
                    cells.truncate(1, u64::from(LEN) + 2);
                }
                for at in [LEN + 2, LEN + 12, LEN + 22] {
                    let next = keys(1, at..at + 10);
                    let found = place(&mut copied, &next);
                    assert_eq!(found, place(&mut computed, &next), "{window:?} at {at}");
                }
            }
        }
    }

    #[test]
    fn a_prefix_that_does_not_fit_is_taken_back() {
        let mut cells = KvCells::with_parts(128, Some(Window::Sliding(40)), (2, 64));
        place(&mut cells, &keys(0, 0..70)).expect_err("64 cells");
        place(&mut cells, &keys(0, 0..30)).expect("there is room");
        let state = |c: &KvCells| (c.cells.clone(), c.sequences.clone(), c.heads.clone());
        let before = state(&cells);
        cells.begin();
        cells.place_prefix(1, 10..80).expect_err("64 cells");
        cells.revert();
        assert_eq!(state(&cells), before);
        cells.begin();
        cells.place_prefix(1, 80..80).expect("no cells");
        assert_eq!((cells.next(1), cells.can_truncate(1, 79)), (80, false));
        cells.revert();
        assert_eq!(state(&cells), before);
    }
}
