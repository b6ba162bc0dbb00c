use crate::error::ExecError;

/// A token's position and sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenPos {
    /// Position in the sequence, from 0 on.
    pub pos: u32,
    /// The sequence.
    pub seq: u32,
}

/// A choice to compute a token's logits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Logits {
    /// Logits are requested.
    Requested,
    /// Logits are not requested.
    NotRequested,
}

/// Tokens to decode together. All lists except the last have one entry per token.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// Token ids.
    pub tokens: Vec<u32>,
    /// Positions, which increase within a sequence, also across batches.
    pub positions: Vec<u32>,
    /// Sequences.
    pub seq_ids: Vec<u32>,
    /// Indices of the tokens whose logits are requested.
    pub output_rows: Vec<u32>,
}

impl Batch {
    /// Returns a batch of consecutive tokens of one sequence, from position `first` on, with logits for all.
    pub fn sequence(tokens: &[u32], first: u32, seq: u32) -> Batch {
        let n = tokens.len() as u32;
        Batch {
            tokens: tokens.to_vec(),
            positions: (0..n).map(|i| first.saturating_add(i)).collect(),
            seq_ids: vec![seq; tokens.len()],
            output_rows: (0..n).collect(),
        }
    }

    /// Restricts the requested logits to the last token.
    #[must_use]
    pub fn last_only(mut self) -> Batch {
        self.output_rows = (self.tokens.len() as u32)
            .checked_sub(1)
            .into_iter()
            .collect();
        self
    }

    /// Returns an empty batch with capacity for `n` tokens.
    pub fn with_capacity(n: usize) -> Batch {
        Batch {
            tokens: Vec::with_capacity(n),
            positions: Vec::with_capacity(n),
            seq_ids: Vec::with_capacity(n),
            output_rows: Vec::with_capacity(n),
        }
    }

    /// Appends a token.
    pub fn push(&mut self, token: u32, at: TokenPos, logits: Logits) {
        if logits == Logits::Requested {
            self.output_rows.push(self.tokens.len() as u32);
        }
        self.tokens.push(token);
        self.positions.push(at.pos);
        self.seq_ids.push(at.seq);
    }

    /// Removes all tokens.
    pub fn clear(&mut self) {
        self.tokens.clear();
        self.positions.clear();
        self.seq_ids.clear();
        self.output_rows.clear();
    }

    /// Returns each token's position and sequence.
    ///
    /// # Errors
    /// Returns [`ExecError::BadBatch`] if the lists differ in length or an output row is out of range.
    pub fn keys(&self) -> Result<Vec<TokenPos>, ExecError> {
        let mut keys = Vec::new();
        self.write_keys(&mut keys).map(|()| keys)
    }

    pub(super) fn write_keys(&self, keys: &mut Vec<TokenPos>) -> Result<(), ExecError> {
        let n = self.tokens.len();
        for (what, len) in [
            ("positions", self.positions.len()),
            ("seq_ids", self.seq_ids.len()),
        ] {
            if len != n {
                return Err(ExecError::BadBatch {
                    what: format!("{len} {what} for {n} tokens"),
                });
            }
        }
        if let Some(row) = self.output_rows.iter().find(|&&r| r as usize >= n) {
            return Err(ExecError::BadBatch {
                what: format!("output row {row} of {n} tokens"),
            });
        }
        let found = self.positions.iter().zip(&self.seq_ids);
        keys.clear();
        keys.extend(found.map(|(&pos, &seq)| TokenPos { pos, seq }));
        Ok(())
    }

    /// Returns a batch of some tokens, and for each of its output rows the output row of this batch.
    pub(super) fn part(&self, tokens: &[usize]) -> (Batch, Vec<usize>) {
        let mut out = Batch::default();
        let mut rows = Vec::new();
        for (i, &token) in tokens.iter().enumerate() {
            out.tokens.push(self.tokens[token]);
            out.positions.push(self.positions[token]);
            out.seq_ids.push(self.seq_ids[token]);
            let requested = self.output_rows.iter().enumerate();
            for (row, _) in requested.filter(|&(_, &t)| t as usize == token) {
                out.output_rows.push(i as u32);
                rows.push(row);
            }
        }
        (out, rows)
    }

    /// Returns the sequences, in the order of their first tokens.
    pub fn seqs(&self) -> Vec<u32> {
        let mut seqs = Vec::new();
        self.write_seqs(&mut seqs);
        seqs
    }

    pub(super) fn write_seqs(&self, seqs: &mut Vec<u32>) {
        seqs.clear();
        for &seq in &self.seq_ids {
            if seqs.last() != Some(&seq) && !seqs.contains(&seq) {
                seqs.push(seq);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_of_a_batch_must_agree() {
        let expected: Vec<TokenPos> = (4..7).map(|pos| TokenPos { pos, seq: 1 }).collect();
        let good = Batch::sequence(&[5, 6, 7], 4, 1);
        assert_eq!(good.keys(), Ok(expected));
        assert_eq!(good.seqs(), [1]);
        assert_eq!(good.clone().last_only().output_rows, [2]);
        let mut bad = good.clone();
        bad.positions.pop();
        assert_eq!(bad.keys().expect_err("short").code(), "TPC0515");
        let mut bad = good;
        bad.output_rows.push(3);
        assert_eq!(bad.keys().expect_err("no such token").code(), "TPC0515");
    }
}
