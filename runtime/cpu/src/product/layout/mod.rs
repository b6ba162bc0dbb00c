//! The memory layout of quantised weights: sixteen rows in sixteen lanes.
//!
//! A *panel* is 16 rows. Along K it is a sequence of *steps* of 256 elements; the first and last step may be shorter.
//! A step is a head with the scales, then a body with codes for each block of 32 elements. The codes of 4 elements of
//! a row are a *unit*. For 8-bit codes, unit `u` of row `r` begins at byte `4·(16·u + r)` of the body; smaller codes
//! share these words ([`codes`]). A 64-byte load reads one unit of all rows, and one dot instruction multiplies it by
//! 4 activations in all lanes. Sizes equal the file's unless [`types`] states another size.
//!
//! If a step's scales take half a cache line, every second step would straddle lines. Such scales are stored after
//! the panel's steps (`behind`), one entry per step.

#![expect(unsafe_code, reason = "traits of kernels")]

pub(super) mod codes;
pub(super) mod geometry;
pub(super) mod scales;
pub(super) mod types;

use super::simd::{Simd, Width};

pub(super) const ROWS: usize = 16;
/// Blocks of 32 in a step.
pub(super) const STEP: usize = 8;

/// Stored codes of a block of 32 elements, for 16 rows.
pub(super) trait Codes {
    const BYTES: usize;
    /// log2 of the codes' offset, or `None` without offset.
    const OFFSET: Option<u32>;
    const WIDTH: Width;
    /// The largest code with its offset.
    const LARGEST: u8;

    /// Stores the file's codes as row `row` of the panel.
    fn put(codes: &[u8; 32], row: usize, body: &mut [u8]);

    /// Returns the 8 units of a body.
    ///
    /// # Safety
    /// Same as [`Simd`]; `body` points to [`Codes::BYTES`] bytes.
    unsafe fn get<S: Simd>(body: *const u8) -> [S::I; 8];
}

/// Stored scales of a step, for 16 rows.
pub(super) trait Scales {
    const SUB: usize;
    const MIN: bool;
    /// True if [`Scales::HEAD`] counts per block instead of per step.
    const PER_BLOCK: bool;
    const HEAD: usize;
    /// Bytes of trailing scales per step.
    const BEHIND: usize;
    /// A decoded head, used for a whole step.
    type Head<S: Simd>: Copy;

    /// Stores the scales of a file block as row `row` of the panel. `index` is the block's number in the step; `head`
    /// and `behind` belong to the step.
    fn put(block: &[u8], index: usize, row: usize, head: &mut [u8], behind: &mut [u8]);

    /// Reads a head.
    ///
    /// # Safety
    /// Same as [`Simd`]; `head` and `behind` point to the step's head and trailing scales.
    unsafe fn head<S: Simd>(head: *const u8, behind: *const u8) -> Self::Head<S>;

    /// Returns the scale of part `j` (16 elements) of block `b` of the step.
    ///
    /// # Safety
    /// Same as [`Scales::head`], and the head's memory is still valid.
    unsafe fn scale<S: Simd>(head: &Self::Head<S>, b: usize, j: usize) -> S::F;

    /// Returns the minimum of part `j` of block `b`, which is added to `scale · code`.
    ///
    /// # Safety
    /// Same as [`Scales::scale`].
    unsafe fn min<S: Simd>(head: &Self::Head<S>, b: usize, j: usize) -> S::F;
}

/// A stored type: codes, scales, and their positions in the file.
pub(super) trait Layout {
    type Codes: Codes;
    type Scales: Scales;
    const BLOCK: usize;
    const BYTES: usize;

    /// Reads a file block's [`Layout::BLOCK`] codes into the start of `out`.
    fn codes(block: &[u8], out: &mut [u8; 256]);
}
