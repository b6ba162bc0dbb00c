//! Weights in planes as kernel arguments: `PlaneWeight` of `gemv.cuh`.
//!
//! Weights do not move while a program runs. As an argument, a weight's addresses are constants of the launch, so a kernel loads
//! weights without reading a view first.

use std::ops::Range;

use serde::{Deserialize, Serialize};
use tpc_ir::{DType, RANK};

use crate::planes::{PLANES, Planes};

/// Rows of a weight in planes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WeightArgument {
    /// The operand that is the weight.
    pub operand: usize,
    /// The offset of the first row in each plane, from the address of the operand, in bytes.
    pub offsets: [u64; PLANES],
    /// The bytes of a row in each plane.
    pub row_bytes: [u32; PLANES],
    /// The pairs per row, and the rows.
    pub sizes: [u32; 2],
    /// The blocks of this product and of all earlier products of the launch.
    pub blocks: u32,
}

impl WeightArgument {
    /// The bytes of `PlaneWeight`.
    pub const BYTES: usize = 64;

    /// Returns the argument for some rows of an operand with one matrix of this type and size.
    pub(super) fn new(
        (operand, dtype, dims): (usize, DType, [usize; RANK]),
        rows: Range<u64>,
        blocks: usize,
    ) -> Result<WeightArgument, &'static str> {
        let planes = Planes::new(dtype, dims[0]);
        let planes = planes.ok_or("planes do not support this type and row size")?;
        let row_bytes = planes.row_bytes();
        let found = planes.offsets(dims[1] as u64);
        let (mut offsets, _) = found.ok_or("the weight is too large")?;
        for (offset, bytes) in offsets.iter_mut().zip(row_bytes) {
            *offset += rows.start * bytes as u64;
        }
        let small = |n: u64| u32::try_from(n).map_err(|_| "a size exceeds 32 bits");
        Ok(WeightArgument {
            operand,
            offsets,
            row_bytes: row_bytes.map(|bytes| bytes as u32),
            sizes: [small(planes.pairs() as u64)?, small(rows.end - rows.start)?],
            blocks: small(blocks as u64)?,
        })
    }

    /// Returns the bytes of the argument, for the address of the operand.
    pub fn bytes(&self, address: u64) -> Vec<u8> {
        let addresses = self.offsets.map(|offset| address.wrapping_add(offset));
        let mut out: Vec<u8> = addresses.iter().flat_map(|a| a.to_ne_bytes()).collect();
        let sizes = self.row_bytes.iter().chain(&self.sizes);
        let words = sizes.chain([&self.blocks]);
        out.extend(words.flat_map(|n| n.to_ne_bytes()));
        out.resize(WeightArgument::BYTES, 0);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_found_in_each_plane() {
        let weight = (3, DType::Q8_0, [64, 10, 1, 1]);
        let argument = WeightArgument::new(weight, 4..10, 2).expect("small");
        // A row has 64 codes and two heads of two bytes.
        assert_eq!(argument.row_bytes, [64, 0, 0, 4]);
        assert_eq!(argument.offsets, [256, 640, 640, 656]);
        assert_eq!(argument.sizes, [1, 6]);
        let bytes = argument.bytes(1000);
        assert_eq!(bytes.len(), WeightArgument::BYTES);
        assert_eq!(bytes[..8], 1256_u64.to_ne_bytes());
        assert_eq!(bytes[32..36], 64_u32.to_ne_bytes());
        assert_eq!(bytes[56..60], 2_u32.to_ne_bytes());
    }
}
