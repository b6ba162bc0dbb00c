//! The division of a cache's cells among sequences.
//!
//! Block `b` of part `p` is block `b · parts + p` of the cache, so equally full parts leave no gaps between them. A
//! block is [`CELL_BLOCK`] cells, or a unit of a cache that is divided by cells. Devices then store the same share of
//! each part.

use tpc_ir::CELL_BLOCK;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Parts {
    count: usize,
    len: usize,
    /// Number of cells per block.
    block: usize,
}

impl Parts {
    /// Divides `cells` cells into `count` parts of whole blocks, at most `most` cells each. Blocks are whole units of
    /// `unit` cells.
    pub(super) fn new(cells: usize, (count, most): (usize, usize), unit: usize) -> Parts {
        let count = count.max(1);
        let block = match unit.is_multiple_of(CELL_BLOCK) {
            true => unit.max(1),
            false => CELL_BLOCK.saturating_mul(unit),
        };
        let len = match count {
            1 => cells,
            n => cells / block.saturating_mul(n) * block,
        };
        let len = len.min(most);
        Parts { count, len, block }
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
            n => (at / self.block * n + part) * self.block + at % self.block,
        }
    }

    /// Returns the part of a cache row, and the cell within the part.
    pub(super) const fn place_of(self, row: usize) -> (usize, usize) {
        match self.count {
            1 => (0, row),
            n => {
                let block = row / self.block;
                (block % n, block / n * self.block + row % self.block)
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
                let parts = Parts::new(cells, (count, usize::MAX), 1);
                assert!(parts.len() >= each, "{each} in {count}");
                let mut seen = vec![false; cells];
                for part in 0..count {
                    let rows: Vec<usize> = (0..parts.len()).map(|at| parts.row(part, at)).collect();
                    assert!(rows.is_sorted(), "the order of cells is that of the part");
                    for (at, &row) in rows.iter().enumerate() {
                        assert_eq!(parts.place_of(row), (part, at));
                        assert!(!std::mem::replace(&mut seen[row], true));
                        assert!(count == 1 || row % CELL_BLOCK == at % CELL_BLOCK);
                    }
                }
                assert!(seen.iter().all(|s| *s));
            }
        }
    }
    #[test]
    fn parts_are_whole_units() {
        for (unit, block) in [(128, 128), (192, 192), (2, 128)] {
            let parts = Parts::new(5 * block, (2, usize::MAX), unit);
            assert_eq!(parts.len(), 2 * block);
            for part in 0..2 {
                for at in 0..parts.len() {
                    let row = parts.row(part, at);
                    assert_eq!(row / block % 2, part);
                    assert_eq!(parts.place_of(row), (part, at));
                }
            }
        }
    }
}
