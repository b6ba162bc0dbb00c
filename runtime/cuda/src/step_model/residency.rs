use tpc_ir::DType;

use super::card::Card;
use super::table::KernelCounts;
use crate::planes::Planes;

/// The registers of a multiprocessor.
const REGISTERS: u32 = 65536;

/// Returns the blocks of a kernel that run at once on a multiprocessor.
pub fn resident_blocks(card: &Card, counts: &KernelCounts, threads: u32, shared: u32) -> u32 {
    let (most_threads, most_blocks, most_shared) = card.limits();
    let threads = threads.max(1).next_multiple_of(32);
    let registers = counts.registers.max(1).next_multiple_of(8) * threads;
    // The driver reserves 1 KB of a block's shared memory, except on compute capability 7.5.
    let reserved = if card.capability < (8, 0) { 0 } else { 1024 };
    let shared = (shared + counts.shared + reserved).max(1);
    let blocks = most_blocks.min(most_threads / threads);
    blocks
        .min(REGISTERS / registers)
        .min(most_shared / shared)
        .max(1)
}

/// Returns the bytes of weights in flight per multiprocessor in a product for one token with four rows per warp, as the
/// table of the book: 16-byte loads in flight per thread times resident threads.
pub fn bytes_in_flight(
    card: &Card,
    counts: &KernelCounts,
    dtype: DType,
    threads: u32,
) -> Option<u64> {
    const PAIR: usize = 64;
    const ROWS: u64 = 4;
    let blocks = resident_blocks(card, counts, threads, 0);
    let k = 4096;
    let bytes = Planes::new(dtype, k)?.row_bytes().map(|b| b / (k / PAIR));
    let wide = |bytes: usize| {
        if bytes.is_multiple_of(16) {
            bytes as u64
        } else {
            0
        }
    };
    let loaded = (wide(bytes[0]) + wide(bytes[1])) * ROWS;
    Some(loaded * u64::from(threads) * u64::from(blocks))
}
