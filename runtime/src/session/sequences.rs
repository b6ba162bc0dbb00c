//! Sequences of a batch for recurrent layers: parts whose sequences have equally many tokens, and the cells of the
//! states that sequences have.

use crate::error::ExecError;

/// Tokens of a batch that recurrent layers read together: equally many of each of some sequences, all of the first
/// sequence first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// Indices into the batch.
    pub(super) tokens: Vec<usize>,
    /// The sequences, in the order of the tokens.
    pub(super) seqs: Vec<u32>,
}

/// Cuts a batch, given by the sequence of each token, into parts, one at least. Each part has tokens of every sequence
/// that has some left.
pub(super) fn parts(seq_ids: &[u32]) -> Vec<Part> {
    let mut left: Vec<(u32, Vec<usize>)> = Vec::new();
    for (token, &seq) in seq_ids.iter().enumerate() {
        match left.iter_mut().find(|(s, _)| *s == seq) {
            Some((_, tokens)) => tokens.push(token),
            None => left.push((seq, vec![token])),
        }
    }
    let mut out = Vec::new();
    loop {
        let each = left.iter().map(|(_, t)| t.len()).min().unwrap_or(0);
        out.push(Part {
            tokens: left.iter_mut().flat_map(|(_, t)| t.drain(..each)).collect(),
            seqs: left.iter().map(|&(seq, _)| seq).collect(),
        });
        left.retain(|(_, t)| !t.is_empty());
        if left.is_empty() {
            return out;
        }
    }
}

/// Which sequence each cell of the recurrent states belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StateCells(Vec<Option<u32>>);

/// The cell of a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StateCell {
    pub(super) cell: usize,
    /// Whether the sequence starts there, so that what the cell holds is not its own.
    pub(super) starts: bool,
}

impl StateCells {
    pub(super) fn new(n_seq_max: usize) -> StateCells {
        StateCells(vec![None; n_seq_max])
    }

    /// The cells of these sequences, the lowest free one for each that starts.
    ///
    /// # Errors
    /// [`ExecError::StatesFull`] when there are not enough cells. Nothing changes then.
    pub(super) fn place(&mut self, seqs: &[u32]) -> Result<Vec<StateCell>, ExecError> {
        let mut cells = self.0.clone();
        let mut out = Vec::new();
        for &seq in seqs {
            let own = cells.iter().position(|&c| c == Some(seq));
            let free = || cells.iter().position(Option::is_none);
            let cell = own.or_else(free).ok_or(ExecError::StatesFull {
                cells: cells.len(),
                seq,
            })?;
            cells[cell] = Some(seq);
            let starts = own.is_none();
            out.push(StateCell { cell, starts });
        }
        self.0 = cells;
        Ok(out)
    }

    pub(super) fn remove_sequence(&mut self, seq: u32) {
        for cell in self.0.iter_mut().filter(|c| **c == Some(seq)) {
            *cell = None;
        }
    }

    pub(super) fn clear(&mut self) {
        self.0.fill(None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_have_sequences_of_one_length() {
        let found = parts(&[4, 4, 7, 4, 7, 9]);
        let expected = [
            (vec![0, 2, 5], vec![4, 7, 9]),
            (vec![1, 4], vec![4, 7]),
            (vec![3], vec![4]),
        ];
        assert_eq!(found, expected.map(|(tokens, seqs)| Part { tokens, seqs }));
        let even = &parts(&[1, 0, 1, 0])[..];
        assert_eq!(even.len(), 1);
        assert_eq!(even[0].tokens, [0, 2, 1, 3]);
        assert_eq!(parts(&[]).len(), 1, "an empty batch runs too");
    }

    #[test]
    fn a_sequence_keeps_its_cell_until_it_is_forgotten() {
        let mut cells = StateCells::new(2);
        let cell = |cell, starts| StateCell { cell, starts };
        assert_eq!(cells.place(&[5]), Ok(vec![cell(0, true)]));
        let both = cells.place(&[8, 5]).expect("two cells");
        assert_eq!(both, [cell(1, true), cell(0, false)]);
        let full = cells.place(&[5, 3]).expect_err("no third");
        assert_eq!(full.code(), "TPC0520");
        cells.remove_sequence(5);
        let next = cells.place(&[3, 8]).expect("a cell is free");
        assert_eq!(next, [cell(0, true), cell(1, false)]);
        cells.clear();
        assert_eq!(cells.place(&[8]), Ok(vec![cell(0, true)]));
    }
}
