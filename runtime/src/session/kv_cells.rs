//! The cells of a KV cache, and the masks over them.

use std::collections::BTreeMap;

use tpc_ir::Window;

use super::batch::TokenPos;
use crate::error::ExecError;
use crate::executor::MaskValues;
use crate::tensor::{self, Data, Tensor};

/// The cells of a KV cache: which token each holds.
///
/// With a window a token sees what that [reaches](Window::reaches) of its sequence, and the cell of a token that no
/// further one can see is used again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KvCells {
    /// The number of cells.
    len: usize,
    /// The cells up to the last one in use, so that a copy of a large and nearly empty cache is small.
    cells: Vec<Option<TokenPos>>,
    window: Option<Window>,
    /// With a window, the cell behind the one that was assigned last: the search for free ones begins here. So cells are used
    /// in a circle, and stand in the order of positions as long as possible, in whichever batches the tokens come.
    head: usize,
    /// Per sequence the first position not decoded yet.
    next: BTreeMap<u32, u64>,
}

impl KvCells {
    /// `n_cells` empty cells.
    pub fn new(n_cells: usize, window: Option<Window>) -> KvCells {
        KvCells {
            len: n_cells,
            cells: Vec::new(),
            window,
            head: 0,
            next: BTreeMap::new(),
        }
    }

    /// Number of cells.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no cells at all.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Number of cells up to the last one in use: those that a batch attends to.
    pub fn n_kv(&self) -> usize {
        self.cells.len()
    }

    /// Assigns a cell to each token and returns the cells: the lowest free ones, or with a window those behind the last.
    /// A cell is free when it is empty, or when neither a token of this batch nor a later one can see what it holds.
    ///
    /// # Errors
    /// [`ExecError::CacheFull`] when there are not enough free cells, [`ExecError::BadBatch`] when the positions of a
    /// sequence do not rise. Nothing changes then.
    pub fn place(&mut self, tokens: &[TokenPos]) -> Result<Vec<usize>, ExecError> {
        let mut next = self.next.clone();
        // The first position of each sequence that may still look back.
        let mut horizon = self.next.clone();
        let mut started: BTreeMap<u32, u64> = BTreeMap::new();
        for t in tokens {
            let pos = u64::from(t.pos);
            let expected = next.entry(t.seq).or_insert(0);
            if pos < *expected {
                return Err(ExecError::BadBatch {
                    what: format!(
                        "position {pos} of sequence {} comes after position {}",
                        t.seq,
                        *expected - 1
                    ),
                });
            }
            *expected = pos + 1;
            started.entry(t.seq).or_insert(pos);
        }
        horizon.extend(started);
        let unseen = |c: &TokenPos| {
            self.window.is_some_and(|w| {
                let from = horizon.get(&c.seq).copied().unwrap_or(0);
                !w.reaches(from, c.pos.into())
            })
        };
        let held = |i: usize| self.cells.get(i).and_then(Option::as_ref);
        let rows: Vec<usize> = (self.head..self.len)
            .chain(0..self.head)
            .filter(|&i| held(i).is_none_or(unseen))
            .take(tokens.len())
            .collect();
        if rows.len() < tokens.len() {
            return Err(ExecError::CacheFull {
                needed: tokens.len(),
                free: rows.len(),
                cells: self.len,
                window: self.window.map(Window::tokens),
            });
        }
        let used = rows.iter().map(|row| row + 1).max().unwrap_or(0);
        self.cells.resize(self.cells.len().max(used), None);
        for (&row, &t) in rows.iter().zip(tokens) {
            self.cells[row] = Some(t);
        }
        if self.window.is_some()
            && let Some(last) = rows.last()
        {
            self.head = (last + 1) % self.len;
        }
        self.next = next;
        Ok(rows)
    }

    /// Whether a token at `q` attends to what `cell` holds: an earlier or its own position of its sequence, within
    /// the window.
    fn sees(&self, q: TokenPos, cell: Option<TokenPos>) -> Option<u32> {
        let k = cell?;
        let distance = q.pos.checked_sub(k.pos)?;
        let within = |w: Window| w.reaches(q.pos.into(), k.pos.into());
        let within = self.window.is_none_or(within);
        (k.seq == q.seq && within).then_some(distance)
    }

    /// The mask of these tokens, already placed, over the first [`Self::n_kv`] cells: `[n_kv, n_tokens]`, −∞ where a
    /// token does not attend to a cell.
    ///
    /// # Errors
    /// [`ExecError::Size`] when it does not fit memory.
    pub fn mask(&self, tokens: &[TokenPos], values: MaskValues) -> Result<Tensor, ExecError> {
        let dims = [self.n_kv(), tokens.len(), 1, 1];
        let mut out = tensor::buffer(dims)?;
        for &q in tokens {
            out.extend(
                self.cells[..dims[0]]
                    .iter()
                    .map(|&c| match (self.sees(q, c), values) {
                        (None, _) => f32::NEG_INFINITY,
                        (Some(_), MaskValues::Zero) => 0.0,
                        // Contexts are shorter than 2²⁴ tokens.
                        (Some(distance), MaskValues::Distance) => -(distance as f32),
                    }),
            );
        }
        Tensor::new(dims, Data::F32(out))
    }

    /// Frees the cells of a sequence, which may start again at position 0.
    pub fn remove_sequence(&mut self, seq: u32) {
        for cell in &mut self.cells {
            if cell.is_some_and(|c| c.seq == seq) {
                *cell = None;
            }
        }
        let used = self.cells.iter().rposition(Option::is_some);
        self.cells.truncate(used.map_or(0, |i| i + 1));
        self.next.remove(&seq);
    }

    /// Frees all cells.
    pub fn clear(&mut self) {
        self.cells.clear();
        self.head = 0;
        self.next.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(seq: u32, positions: std::ops::Range<u32>) -> Vec<TokenPos> {
        positions.map(|pos| TokenPos { pos, seq }).collect()
    }

    /// One line per token: `.` where it attends, `-` where not.
    fn picture(cells: &KvCells, tokens: &[TokenPos]) -> Vec<String> {
        let mask = cells.mask(tokens, MaskValues::Zero).expect("small");
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
        assert_eq!(cells.place(&prompt), Ok(vec![0, 1, 2]));
        assert_eq!(picture(&cells, &prompt), [".--", "..-", "..."]);
        let next = keys(0, 3..4);
        assert_eq!(cells.place(&next), Ok(vec![3]));
        assert_eq!(picture(&cells, &next), ["...."]);
        assert_eq!(cells.n_kv(), 4);
    }

    #[test]
    fn sequences_do_not_see_each_other() {
        let mut cells = KvCells::new(8, None);
        let both = [keys(0, 0..2), keys(7, 0..2)].concat();
        assert_eq!(cells.place(&both), Ok(vec![0, 1, 2, 3]));
        assert_eq!(picture(&cells, &both), [".---", "..--", "--.-", "--.."]);
        cells.remove_sequence(0);
        assert_eq!(cells.place(&keys(3, 0..1)), Ok(vec![0]));
        assert_eq!(cells.place(&keys(7, 2..3)), Ok(vec![1]));
        assert_eq!(picture(&cells, &keys(7, 2..3)), ["-..."]);
        cells.remove_sequence(7);
        assert_eq!(cells.n_kv(), 1);
    }

    #[test]
    fn a_window_reuses_the_cells_it_has_passed() {
        let mut cells = KvCells::new(5, Some(Window::Sliding(3)));
        assert_eq!(cells.place(&keys(0, 0..4)), Ok(vec![0, 1, 2, 3]));
        // Token 4 takes the cell behind the last; it sees 2, 3 and 4.
        assert_eq!(cells.place(&keys(0, 4..5)), Ok(vec![4]));
        assert_eq!(picture(&cells, &keys(0, 4..5)), ["--..."]);
        assert_eq!(cells.place(&keys(0, 5..7)), Ok(vec![0, 1]));
        // Cells now hold positions 5, 6, 2, 3, 4: each token of the batch sees the three up to itself.
        assert_eq!(picture(&cells, &keys(0, 5..7)), [".--..", "..--."]);
        assert_eq!(cells.n_kv(), 5);
    }

    #[test]
    fn chunks_free_their_cells_together() {
        let mut cells = KvCells::new(4, Some(Window::Chunks(3)));
        assert_eq!(cells.place(&keys(0, 0..4)), Ok(vec![0, 1, 2, 3]));
        assert_eq!(
            picture(&cells, &keys(0, 0..4)),
            [".---", "..--", "...-", "---."]
        );
        // Token 4 sees 3, the first of its chunk.
        assert_eq!(cells.place(&keys(0, 4..6)), Ok(vec![0, 1]));
        assert_eq!(picture(&cells, &keys(0, 4..6)), [".--.", "..-."]);
    }

    #[test]
    fn a_cell_that_the_first_token_of_a_batch_sees_is_not_reused_by_the_last() {
        let mut cells = KvCells::new(4, Some(Window::Sliding(3)));
        cells.place(&keys(0, 0..3)).expect("empty");
        // Token 3 needs positions 1 and 2, so only cells 0 and 3 are free for tokens 3 to 5.
        let full = cells.place(&keys(0, 3..6)).expect_err("three tokens");
        assert_eq!(full.code(), "TPC0514");
        assert_eq!(cells.place(&keys(0, 3..5)), Ok(vec![3, 0]));
    }

    #[test]
    fn a_waiting_sequence_keeps_what_its_next_token_sees() {
        let mut cells = KvCells::new(4, Some(Window::Sliding(2)));
        cells.place(&keys(1, 0..3)).expect("empty");
        // Sequence 1 continues at 3 and then sees 2 and 3: cell 2 stays.
        assert_eq!(cells.place(&keys(2, 0..3)), Ok(vec![3, 0, 1]));
        assert_eq!(cells.place(&keys(1, 3..4)), Ok(vec![3]));
        assert_eq!(picture(&cells, &keys(1, 3..4)), ["--.."]);
    }

    #[test]
    fn positions_must_rise() {
        let mut cells = KvCells::new(8, None);
        cells.place(&keys(0, 0..3)).expect("empty");
        let before = cells.clone();
        assert_eq!(
            cells.place(&keys(0, 2..3)).expect_err("again").code(),
            "TPC0515"
        );
        let twice = [keys(0, 4..5), keys(0, 4..5)].concat();
        assert_eq!(cells.place(&twice).expect_err("twice").code(), "TPC0515");
        assert_eq!(
            cells.place(&keys(0, 3..9)).expect_err("full").code(),
            "TPC0514"
        );
        assert_eq!(cells, before);
        cells.clear();
        assert_eq!(cells.n_kv(), 0);
        assert_eq!(cells.place(&keys(0, 0..8)).expect("all").len(), 8);
    }

    #[test]
    fn distances_for_alibi() {
        let mut cells = KvCells::new(4, None);
        let tokens = keys(0, 0..3);
        cells.place(&tokens).expect("empty");
        let mask = cells
            .mask(&tokens[1..], MaskValues::Distance)
            .expect("small");
        let none = f64::NEG_INFINITY;
        assert_eq!(
            *mask.reals().expect("real"),
            [-1.0, 0.0, none, -2.0, -1.0, 0.0]
        );
    }
}
