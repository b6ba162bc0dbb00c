use crate::error::ExecError;

/// Tokens that recurrent layers read together, grouped by sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) tokens: Vec<usize>,
    pub(super) seqs: Vec<u32>,
}

/// Cuts a batch, given by each token's sequence, into at least one part. Each part has tokens of every sequence with
/// remaining tokens.
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

pub(super) fn is_one_part(seq_ids: &[u32]) -> bool {
    let Some(first) = seq_ids.first() else {
        return true;
    };
    let each = seq_ids.iter().take_while(|s| *s == first).count();
    let mut runs = seq_ids.chunks(each);
    let even = runs.all(|run| run.len() == each && run.iter().all(|s| *s == run[0]));
    let distinct = |(i, s): (usize, &u32)| !seq_ids.iter().step_by(each).take(i).any(|t| t == s);
    even && seq_ids.iter().step_by(each).enumerate().all(distinct)
}

/// The sequence of each cell of the recurrent states. Transactions work as in [`KvCells`](super::KvCells).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StateCells {
    owners: Vec<Option<u32>>,
    placed: Vec<StateCell>,
    given: Vec<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StateCell {
    pub(super) cell: usize,
    /// True if the sequence starts in this batch, so the cell's old content belongs to another sequence.
    pub(super) starts: bool,
}

impl StateCells {
    pub(super) fn new(n_seq_max: usize) -> StateCells {
        StateCells {
            owners: vec![None; n_seq_max],
            placed: Vec::new(),
            given: Vec::new(),
        }
    }

    pub(super) fn owners(&self) -> &[Option<u32>] {
        &self.owners
    }

    /// Sets the owners of the cells. Cells without an entry are free.
    pub(super) fn set_owners(&mut self, owners: &[Option<u32>]) {
        self.owners.fill(None);
        self.owners
            .iter_mut()
            .zip(owners)
            .for_each(|(to, o)| *to = *o);
    }

    pub(super) fn cell(&self, seq: u32) -> Option<usize> {
        self.owners.iter().position(|&c| c == Some(seq))
    }

    pub(super) fn placed(&self) -> &[StateCell] {
        &self.placed
    }

    pub(super) fn begin(&mut self) {
        self.given.clear();
    }

    pub(super) fn revert(&mut self) {
        self.keep_given(0);
    }

    /// Frees the cells assigned after the first `n`.
    fn keep_given(&mut self, n: usize) {
        for cell in self.given.drain(n..) {
            self.owners[cell] = None;
        }
    }

    /// Finds the cells of these sequences for [`Self::placed`]. A new sequence gets the lowest free cell. The cells are
    /// unchanged on error.
    pub(super) fn place(&mut self, seqs: &[u32]) -> Result<(), ExecError> {
        let before = self.given.len();
        self.placed.clear();
        for &seq in seqs {
            let own = self.cell(seq);
            let free = || self.owners.iter().position(Option::is_none);
            let Some(cell) = own.or_else(free) else {
                self.keep_given(before);
                return Err(ExecError::StatesFull {
                    cells: self.owners.len(),
                    seq,
                });
            };
            let starts = own.is_none();
            if starts {
                self.owners[cell] = Some(seq);
                self.given.push(cell);
            }
            self.placed.push(StateCell { cell, starts });
        }
        Ok(())
    }

    pub(super) fn remove_sequence(&mut self, seq: u32) {
        for cell in self.owners.iter_mut().filter(|c| **c == Some(seq)) {
            *cell = None;
        }
    }

    pub(super) fn clear(&mut self) {
        self.owners.fill(None);
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
        for (seqs, one) in [
            (&[1, 1, 2, 2][..], true),
            (&[], true),
            (&[3], true),
            (&[1, 2, 3], true),
            (&[1, 1, 2], false),
            (&[1, 2, 1], false),
            (&[1, 2, 1, 2], false),
            (&[1, 1, 2, 2, 1, 1], false),
        ] {
            assert_eq!(is_one_part(seqs), one, "{seqs:?}");
        }
        let even = &parts(&[1, 0, 1, 0])[..];
        assert_eq!(even.len(), 1);
        assert_eq!(even[0].tokens, [0, 2, 1, 3]);
        assert_eq!(parts(&[]).len(), 1, "an empty batch runs too");
    }

    #[test]
    fn a_sequence_keeps_its_cell_until_it_is_forgotten() {
        let mut cells = StateCells::new(2);
        let cell = |cell, starts| StateCell { cell, starts };
        let place = |cells: &mut StateCells, seqs: &[u32]| {
            cells.place(seqs).map(|()| cells.placed().to_vec())
        };
        assert_eq!(place(&mut cells, &[5]), Ok(vec![cell(0, true)]));
        cells.begin();
        let both = place(&mut cells, &[8, 5]).expect("two cells");
        cells.revert();
        assert_eq!(cells.owners(), [Some(5), None]);
        assert_eq!(place(&mut cells, &[8, 5]).as_ref(), Ok(&both));
        assert_eq!(both, [cell(1, true), cell(0, false)]);
        let full = place(&mut cells, &[5, 3]).expect_err("no third");
        assert_eq!(full.code(), "TPC0520");
        cells.remove_sequence(5);
        let next = place(&mut cells, &[3, 8]).expect("a cell is free");
        assert_eq!(next, [cell(0, true), cell(1, false)]);
        cells.clear();
        assert_eq!(place(&mut cells, &[8]), Ok(vec![cell(0, true)]));
    }
}
