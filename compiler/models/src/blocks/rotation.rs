//! The rotation of heads that are stored in a quantised cache.
//!
//! A block of a quantised type has one scale, which its largest element decides. A Walsh–Hadamard rotation along the
//! head spreads large elements over all of its block, so that less is lost. Keys and queries are rotated alike, which
//! leaves their products as they were; values are rotated, and the output of attention is rotated back by the same
//! matrix, which is its own inverse. Blocks and conditions are llama.cpp's, so that its figures for a cache type hold.

use tpc_ir::{DType, Dim, Value};

use super::builder::Builder;
use crate::error::ArchError;

/// No block is shorter, and heads whose size this does not divide are not rotated.
const LEAST_BLOCK: u64 = 64;

/// A rotation of heads, block by block along the head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rotation {
    block: u64,
}

impl Rotation {
    /// The rotation of keys of `head` elements in a cache of this type, and of the queries that meet them: by blocks
    /// of the largest power of two that divides the head.
    pub(super) fn of_keys(cache: DType, head: u64) -> Option<Rotation> {
        let largest = 1_u64.checked_shl(head.trailing_zeros())?;
        Rotation::of(cache, head, largest)
    }

    /// The rotation of values of `head` elements in a cache of this type, and of what attention makes of them.
    pub(super) fn of_values(cache: DType, head: u64) -> Option<Rotation> {
        Rotation::of(cache, head, LEAST_BLOCK)
    }

    fn of(cache: DType, head: u64, block: u64) -> Option<Rotation> {
        let rotated = cache.is_quantised() && head > 0 && head.is_multiple_of(LEAST_BLOCK);
        rotated.then_some(Rotation { block })
    }

    /// Rotates `x: [head, heads, n_tokens]`, forth or back, to values named `name`.
    ///
    /// The blocks of a head become an axis of their own, in front of the axis of heads, so that a split of the heads
    /// stays on one axis all along.
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
            .expect("invariant: blocks divide the heads that they were made for");
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
    fn keys_turn_by_the_largest_block_and_values_by_the_least() {
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
            assert_eq!(block(Rotation::of_keys(DType::Q8_0, head)), k, "{head}");
            assert_eq!(block(Rotation::of_values(DType::Q4_0, head)), v, "{head}");
        }
    }

    #[test]
    fn plain_caches_hold_heads_as_they_are() {
        for plain in [DType::F32, DType::F16, DType::Bf16] {
            assert_eq!(Rotation::of_keys(plain, 128), None);
            assert_eq!(Rotation::of_values(plain, 128), None);
        }
    }
}
