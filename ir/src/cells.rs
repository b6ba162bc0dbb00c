//! KV-cache cells shared by several sequences, and cells divided among devices.
//!
//! Kernels read cells in blocks and sum in cell order. Each sequence owns whole blocks, in token order, so its sums
//! are the same as when it runs alone.

/// Cells per block that kernels read together.
pub const CELL_BLOCK: usize = 64;

/// Returns the number of cache cells for `parts` sequences of up to `each` tokens: `each` cells for one sequence,
/// whole blocks for several. Returns `u64::MAX` on overflow.
#[must_use]
pub const fn cache_cells(each: u64, parts: u64) -> u64 {
    match parts {
        0 | 1 => each,
        // Each sequence owns at least one block.
        _ => (if each == 0 { 1 } else { each })
            .div_ceil(CELL_BLOCK as u64)
            .saturating_mul(CELL_BLOCK as u64)
            .saturating_mul(parts),
    }
}

/// Parts of a KV cache that is divided by cells: block `b` of [`CELL_BLOCK`] cells belongs to part `b mod of`.
///
/// A device stores the blocks of parts `first .. first + count`, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CellParts {
    /// First part.
    pub first: u64,
    /// Number of parts.
    pub count: u64,
    /// Number of parts of the whole cache.
    pub of: u64,
}

impl CellParts {
    /// Returns all of `of` parts.
    #[must_use]
    pub const fn all(of: u64) -> CellParts {
        CellParts {
            first: 0,
            count: of,
            of,
        }
    }

    /// Returns the position of a cell of the whole cache among the cells of these parts; `None` for a cell of another
    /// part.
    #[must_use]
    pub const fn local(&self, cell: u64) -> Option<u64> {
        let block = CELL_BLOCK as u64;
        let (round, part) = (cell / block / self.of, cell / block % self.of);
        if part < self.first || part - self.first >= self.count {
            return None;
        }
        Some((round * self.count + part - self.first) * block + cell % block)
    }

    /// Returns the cell of the whole cache at a position among the cells of these parts.
    #[must_use]
    pub const fn global(&self, local: u64) -> u64 {
        let block = CELL_BLOCK as u64;
        let (round, part) = (local / block / self.count, local / block % self.count);
        (round * self.of + self.first + part) * block + local % block
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_sequences_have_whole_blocks() {
        assert_eq!(cache_cells(100, 1), 100);
        assert_eq!(cache_cells(100, 2), 256);
        assert_eq!(cache_cells(128, 3), 384);
        assert_eq!(cache_cells(0, 2), 128);
        assert_eq!(cache_cells(u64::MAX, 2), u64::MAX);
    }

    #[test]
    fn every_cell_has_one_owner_and_comes_back() {
        for of in 1..6_u64 {
            for cell in 0..64 * of * 3 {
                let owners: Vec<u64> = (0..of)
                    .filter(|&first| {
                        let part = CellParts {
                            first,
                            count: 1,
                            of,
                        };
                        part.local(cell).is_some_and(|l| part.global(l) == cell)
                    })
                    .collect();
                assert_eq!(owners, [cell / 64 % of]);
            }
        }
        let two = CellParts {
            first: 1,
            count: 2,
            of: 4,
        };
        let held: Vec<u64> = (0..1024).filter(|&c| two.local(c).is_some()).collect();
        let local: Vec<u64> = held.iter().filter_map(|&c| two.local(c)).collect();
        assert_eq!(local, (0..held.len() as u64).collect::<Vec<_>>());
        assert!(held.iter().zip(&local).all(|(&c, &l)| two.global(l) == c));
    }
}
