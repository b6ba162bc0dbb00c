//! Weights in planes, the storage format of product kernels.
//!
//! A row of K elements consists of *pairs* of two groups of 32 elements. A lane reads one pair at a time. Each part of
//! a file block is in its own plane, so that adjacent lanes load adjacent runs of 16 bytes:
//!
//! | plane | content for each pair |
//! |-------|-----------------------|
//! | `low` | the low bits of the codes, in chunks of 16 bytes |
//! | `high` | the high bits of codes with 3, 5 or 6 bits |
//! | `steps` | the small scales of 16 or 32 elements |
//! | `heads` | the real scales of 32 or 256 elements |
//!
//! The `low` plane interleaves the chunks of up to 32 pairs: chunk 0 of all pairs, then chunk 1. In every plane, the
//! rows of a matrix and the matrices of a stack are contiguous. Planes are aligned to [`Planes::ALIGNMENT`] bytes. A
//! row with an odd number of groups is padded with a group of zeros.
//!
//! The format is lossless: planes and file blocks decode to the same bits.

mod codes;
mod pack;

use tpc_ir::DType;
use tpc_ir::program::StorageFormat;

pub use pack::PackError;

/// The storage of codes, steps and heads of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Form {
    /// The bits of a code in `low`: 2, 4 or 8.
    low: usize,
    /// The bits of a code in `high`: 0, 1 or 2.
    high: usize,
    /// The bytes of steps per group of 32 elements.
    steps: usize,
    /// The bytes of a head.
    head: usize,
    /// The number of groups per head.
    span: usize,
}

const fn form(dtype: DType) -> Option<Form> {
    let (low, high, steps, head, span) = match dtype {
        DType::Q4_0 | DType::Iq4Nl => (4, 0, 0, 2, 1),
        DType::Q4_1 => (4, 0, 0, 4, 1),
        DType::Q5_0 => (4, 1, 0, 2, 1),
        DType::Q5_1 => (4, 1, 0, 4, 1),
        DType::Q8_0 => (8, 0, 0, 2, 1),
        DType::Mxfp4 => (4, 0, 1, 0, 1),
        DType::Nvfp4 => (4, 0, 2, 0, 1),
        DType::Q2K => (2, 0, 2, 4, 8),
        DType::Q3K => (2, 1, 2, 2, 8),
        DType::Q4K => (4, 0, 2, 4, 8),
        DType::Q5K => (4, 1, 2, 4, 8),
        DType::Q6K => (4, 2, 2, 2, 8),
        DType::Iq4Xs => (4, 0, 1, 2, 8),
        DType::Tq1_0 | DType::Tq2_0 => (2, 0, 0, 2, 8),
        _ => return None,
    };
    Some(Form {
        low,
        high,
        steps,
        head,
        span,
    })
}

/// The planes of rows of one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Planes {
    dtype: DType,
    form: Form,
    /// The number of groups of 32 elements per row.
    groups: usize,
}

/// The number of planes.
pub const PLANES: usize = 4;

impl Planes {
    /// The storage format.
    pub const FORMAT: StorageFormat = StorageFormat::of_blocks("planes");
    /// The alignment in bytes.
    pub const ALIGNMENT: u64 = 16;
    /// The number of pairs whose chunks are interleaved.
    pub const TILE: usize = 32;

    /// Returns the planes of rows of `k` elements; `None` if the type is not stored in planes or `k` is not a multiple
    /// of the block length.
    pub fn new(dtype: DType, k: usize) -> Option<Planes> {
        let form = form(dtype)?;
        let whole = k > 0 && k.is_multiple_of(dtype.block_len() as usize) && k.is_multiple_of(32);
        let whole = whole && (k / 32).is_multiple_of(form.span);
        whole.then_some(Planes {
            dtype,
            form,
            groups: k / 32,
        })
    }

    /// True if a type has planes.
    pub const fn supports(dtype: DType) -> bool {
        form(dtype).is_some()
    }

    /// Returns the number of pairs per row.
    pub const fn pairs(&self) -> usize {
        self.groups.div_ceil(2)
    }

    /// Returns the bytes of a row in each plane.
    pub const fn row_bytes(&self) -> [usize; PLANES] {
        let Form {
            low,
            high,
            steps,
            head,
            span,
        } = self.form;
        let pairs = self.pairs();
        let heads = match span {
            1 => 2 * pairs,
            span => self.groups / span,
        };
        [
            pairs * low * 8,
            pairs * high * 8,
            pairs * steps * 2,
            heads * head,
        ]
    }

    /// Returns the offsets of the planes for `rows` rows, and the total size in bytes; `None` on overflow.
    pub fn offsets(&self, rows: u64) -> Option<([u64; PLANES], u64)> {
        let mut at = 0_u64;
        let mut offsets = [0; PLANES];
        for (offset, bytes) in offsets.iter_mut().zip(self.row_bytes()) {
            *offset = at;
            let end = at.checked_add(rows.checked_mul(bytes as u64)?)?;
            at = end.checked_next_multiple_of(Self::ALIGNMENT)?;
        }
        Some((offsets, at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn planes_are_about_as_large_as_blocks_of_the_file() {
        for &dtype in DType::ALL {
            let Some(planes) = Planes::new(dtype, 4096) else {
                continue;
            };
            let (_, bytes) = planes.offsets(10).expect("small");
            let file = dtype.bytes(4096).expect("whole blocks") * 10;
            let most = match dtype {
                // A plane uses 2 bits per code, the file 1.6 (five codes per byte).
                DType::Tq1_0 => 1.25,
                // A plane uses 8 bits per step, the file 6.
                DType::Q3K => 1.05,
                _ => 1.03,
            };
            let ratio = bytes as f64 / file as f64;
            assert!((0.97..most).contains(&ratio), "{dtype}: {ratio}");
        }
    }

    #[test]
    fn rows_are_whole() {
        assert!(Planes::new(DType::Q4K, 128).is_none());
        assert!(Planes::new(DType::F16, 256).is_none());
        assert!(Planes::new(DType::Q4_0, 0).is_none());
        let odd = Planes::new(DType::Q4_0, 96).expect("whole blocks");
        assert_eq!(odd.pairs(), 2);
        assert_eq!(odd.row_bytes(), [64, 0, 0, 8]);
        assert_eq!(odd.offsets(3).expect("small"), ([0, 192, 192, 192], 224));
    }
}
