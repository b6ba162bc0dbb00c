//! The summation order of matrix products over the contracted axis K, for any number of devices and threads.
//!
//! The `⌈K/32⌉` blocks of K are cut into 8 chunks; chunk `c` ends at block `⌊blocks·(c + 1)/8⌋`. Each chunk is summed
//! in sequence, and the chunk sums as a binary tree. A device that holds a subtree computes its sum. A collective
//! over 2, 4 or 8 devices adds these sums as the rest of the tree.

/// Elements per activation scale; K is split at multiples of it.
pub const SUM_BLOCK: u64 = 32;

/// Chunks of K.
pub const SUM_CHUNKS: u64 = 8;

/// The order of sums over devices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SumOrder {
    /// The single-device order if its extra cost is small, otherwise the cheapest.
    #[default]
    Auto,
    /// The single-device order if possible.
    OneDevice,
    /// The cheapest order.
    Cheapest,
}

/// Returns the first block of chunk `c` of `k` elements; chunk 8 is the end.
pub const fn chunk_start(k: u64, c: u64) -> u64 {
    let blocks = k.div_ceil(SUM_BLOCK);
    // `blocks * c / 8` may overflow.
    blocks / SUM_CHUNKS * c + blocks % SUM_CHUNKS * c / SUM_CHUNKS
}

/// Returns the elements (start and end) of device `rank` if devices hold equal subtrees of the sum over `k`. `None`
/// unless there are 1, 2, 4 or 8 devices.
pub const fn subtree(k: u64, rank: u64, devices: u64) -> Option<(u64, u64)> {
    if devices == 0 || !SUM_CHUNKS.is_multiple_of(devices) || rank >= devices {
        return None;
    }
    let each = SUM_CHUNKS / devices;
    let start = chunk_start(k, rank * each) * SUM_BLOCK;
    let end = chunk_start(k, (rank + 1) * each).saturating_mul(SUM_BLOCK);
    Some((start, if end < k { end } else { k }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subtrees_cover_all_of_it() {
        for k in [1, 31, 32, 33, 256, 768, 4096, 5632, 11008, u64::MAX] {
            for devices in [1, 2, 4, 8] {
                let mut at = 0;
                for rank in 0..devices {
                    let (start, end) = subtree(k, rank, devices).expect("a subtree");
                    assert!(
                        start == at.min(start) && start <= end,
                        "{k} {rank} of {devices}"
                    );
                    at = end;
                }
                assert_eq!(at, k);
            }
            assert_eq!(subtree(k, 0, 3), None);
            assert_eq!(subtree(k, 2, 2), None);
        }
        assert_eq!(subtree(4096, 1, 2), Some((2048, 4096)));
        assert_eq!(subtree(768, 1, 4), Some((192, 384)));
    }
}
