//! The division of a cache's cells among sequences.
//!
//! Block `b` of part `p` is [block](tpc_ir::CELL_BLOCK) `b · parts + p` of the cache, so equally full parts leave no
//! gaps between them.

use tpc_ir::CELL_BLOCK as BLOCK;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Parts {
    count: usize,
    len: usize,
}

impl Parts {
    /// Divides `cells` cells into `count` parts of whole blocks, at most `most` cells each.
    pub(super) fn new(cells: usize, count: usize, most: usize) -> Parts {
        let count = count.max(1);
        let len = match count {
            1 => cells,
            n => cells / (BLOCK * n) * BLOCK,
        };
        let len = len.min(most);
        Parts { count, len }
    }

    pub(super) const fn count(self) -> usize {
        self.count
    }

    pub(super) const fn len(self) -> usize {
        self.len
    }

    pub(super) const fn of(self, seq: u32) -> usize {
        seq as usize % self.count
    }

    pub(super) const fn row(self, part: usize, at: usize) -> usize {
        match self.count {
            1 => at,
            n => (at / BLOCK * n + part) * BLOCK + at % BLOCK,
        }
    }

    /// Returns the part of a cache row, and the cell within the part.
    pub(super) const fn place_of(self, row: usize) -> (usize, usize) {
        match self.count {
            1 => (0, row),
            n => {
                let block = row / BLOCK;
                (block % n, block / n * BLOCK + row % BLOCK)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tpc_ir::cache_cells;

    #[test]
    fn parts_are_blocks_in_turn() {
        for count in 1..5 {
            for each in [1, 63, 64, 65, 200] {
                let cells = cache_cells(each as u64, count as u64) as usize;
                let parts = Parts::new(cells, count, usize::MAX);
                assert!(parts.len() >= each, "{each} in {count}");
                let mut seen = vec![false; cells];
                for part in 0..count {
                    let rows: Vec<usize> = (0..parts.len()).map(|at| parts.row(part, at)).collect();
                    assert!(rows.is_sorted(), "the order of cells is that of the part");
                    for (at, &row) in rows.iter().enumerate() {
                        assert_eq!(parts.place_of(row), (part, at));
                        assert!(!std::mem::replace(&mut seen[row], true));
                        assert!(count == 1 || row % BLOCK == at % BLOCK);
                    }
                }
                assert!(seen.iter().all(|s| *s));
            }
        }
    }
}
