//! The rotation of heads in a quantised cache.
//!
//! A block of a quantised type has one scale, determined by its largest element. A Walsh–Hadamard rotation along the
//! head spreads large elements over the block, which reduces the loss. Keys and queries are rotated by the same matrix,
//! so their products stay the same. Values are rotated; the same matrix, which is its own inverse, rotates attention's
//! output back. Blocks and conditions are llama.cpp's, so that its figures for a cache type apply.

use tpc_ir::{DType, Dim, Value};

use super::builder::Builder;
use crate::error::ArchError;

/// Minimum block length. Heads that are not a multiple of this length are not rotated.
const MIN_BLOCK: u64 = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rotation {
    block: u64,
}

impl Rotation {
    /// Returns the rotation of queries and keys of `head` elements in a cache of this type. The block is the largest
    /// power of two that divides the head.
    pub(super) fn for_keys(cache: DType, head: u64) -> Option<Rotation> {
        let largest = 1_u64.checked_shl(head.trailing_zeros())?;
        Rotation::new(cache, head, largest)
    }

    /// Returns the rotation of values of `head` elements, and of attention's output, in a cache of this type.
    pub(super) fn for_values(cache: DType, head: u64) -> Option<Rotation> {
        Rotation::new(cache, head, MIN_BLOCK)
    }

    fn new(cache: DType, head: u64, block: u64) -> Option<Rotation> {
        let rotated = cache.is_quantised() && head > 0 && head.is_multiple_of(MIN_BLOCK);
        rotated.then_some(Rotation { block })
    }

    /// Rotates `x: [head, heads, n_tokens]`. The rotation is its own inverse.
    ///
    /// A head's blocks become an axis in front of the axis of heads, so that a split of the heads stays on one axis.
    pub(super) fn apply(
        self,
        b: &mut Builder<'_>,
        x: Value,
        name: &str,
    ) -> Result<Value, ArchError> {
        let matrix = b.hadamard(self.block);
        let [head, heads, tokens, _] = b.dims(x).clone();
        let block = Dim::constant(self.block);
        if head == block {
            return b.mul_mat(matrix, x, name);
        }
        let blocks = head
            .checked_div(&block)
            .expect("invariant: the block divides the head");
        let cut = [block, blocks, heads.clone(), tokens.clone()];
        let x = b.reshape(x, cut, name)?;
        let y = b.mul_mat(matrix, x, name)?;
        b.reshape(y, [head, heads, tokens], name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_rotate_by_the_largest_block_and_values_by_the_smallest() {
        let block = |r: Option<Rotation>| r.map(|r| r.block);
        for (head, k, v) in [
            (64, Some(64), Some(64)),
            (128, Some(128), Some(64)),
            (192, Some(64), Some(64)),
            (256, Some(256), Some(64)),
            (576, Some(64), Some(64)),
            (640, Some(128), Some(64)),
            (32, None, None),
            (80, None, None),
            (96, None, None),
            (0, None, None),
        ] {
            assert_eq!(block(Rotation::for_keys(DType::Q8_0, head)), k, "{head}");
            assert_eq!(block(Rotation::for_values(DType::Q4_0, head)), v, "{head}");
        }
    }

    #[test]
    fn caches_that_are_not_quantised_are_not_rotated() {
        for plain in [DType::F32, DType::F16, DType::Bf16] {
            assert_eq!(Rotation::for_keys(plain, 128), None);
            assert_eq!(Rotation::for_values(plain, 128), None);
        }
    }
}
