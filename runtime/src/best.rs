use crate::tensor::Tensor;

/// The largest logits of each output row, in any order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BestLogits {
    all: Vec<(u32, f32)>,
    /// The end of each row in `all`.
    ends: Vec<usize>,
}

impl BestLogits {
    /// Removes all rows.
    pub fn clear(&mut self) {
        self.all.clear();
        self.ends.clear();
    }

    /// Appends a row of tokens with their logits.
    pub fn push_row(&mut self, row: impl IntoIterator<Item = (u32, f32)>) {
        self.all.extend(row);
        self.ends.push(self.all.len());
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.ends.len()
    }

    /// Returns the tokens of a row with their logits; empty if the row does not exist.
    pub fn row(&self, row: usize) -> &[(u32, f32)] {
        let start = row
            .checked_sub(1)
            .map_or(Some(0), |r| self.ends.get(r).copied());
        let range = start.zip(self.ends.get(row).copied());
        range.map_or(&[], |(start, end)| &self.all[start..end])
    }
}

/// The logits of a batch's output rows.
#[derive(Clone, Copy, Debug)]
pub enum Predicted<'a> {
    /// All logits, `[n_vocab, n_outputs]`.
    All(&'a Tensor),
    /// The largest logits of each row. No logit is NaN or positive infinity.
    Best(&'a BestLogits),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_their_tokens() {
        let mut best = BestLogits::default();
        best.push_row([(1, 0.5), (7, 0.25)]);
        best.push_row([]);
        best.push_row([(3, -1.0)]);
        assert_eq!(best.row(0), [(1, 0.5), (7, 0.25)]);
        assert_eq!((best.row(1), best.row(2)), (&[][..], &[(3, -1.0)][..]));
        assert_eq!((best.rows(), best.row(3)), (3, &[][..]));
        best.clear();
        assert_eq!((best.rows(), best.row(0)), (0, &[][..]));
    }
}
