//! Cells of caches that several sequences share.
//!
//! Kernels take cells in blocks, and their sums have the order of cells. So each sequence has whole blocks, which stand in the
//! order of its tokens: then its sums are those that it has alone.

/// Cells that kernels take together, at most.
pub const CELL_BLOCK: usize = 64;

/// The cells of a cache for `parts` sequences of up to `each` tokens: one has as many as it needs, each of several whole blocks.
/// `u64::MAX` where they overflow.
#[must_use]
pub const fn cache_cells(each: u64, parts: u64) -> u64 {
    match parts {
        0 | 1 => each,
        // One block at least: a sequence without cells is none.
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
