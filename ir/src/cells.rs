//! KV-cache cells shared by several sequences.
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
}
