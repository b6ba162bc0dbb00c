//! Activations in the form that products read.

use super::part::BLOCK;
use super::{Isa, ProductError};
use crate::product::simd::{Kernel, Simd};

/// 32 activations as signed codes with one scale, in one cache line.
///
/// `scale` is the largest magnitude divided by 127. Codes are elements divided by `scale`, rounded to nearest, ties
/// to even. If an element is not finite, `scale` and every product with the block are NaN.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C, align(64))]
pub struct Block {
    pub(super) codes: [i8; BLOCK],
    pub(super) scale: f32,
    /// Scale times the sum of codes, for minima of 32 weights.
    pub(super) sum: f32,
    /// Scale times the sum of codes of each half, for minima of 16 weights.
    pub(super) sum16: [f32; 2],
    /// Negative sum of codes, for offsets.
    pub(super) negative: i32,
    /// Negative sum of codes of each half.
    pub(super) negative16: [i32; 2],
    unused: u32,
}

impl Block {
    /// A block of zeros.
    pub const ZERO: Block = Block {
        codes: [0; BLOCK],
        scale: 0.0,
        sum: 0.0,
        sum16: [0.0; 2],
        negative: 0,
        negative16: [0; 2],
        unused: 0,
    };

    /// Returns element `i < 32`.
    pub fn value(&self, i: usize) -> f32 {
        f32::from(self.codes[i]) * self.scale
    }
}

/// Adding and subtracting 1.5·2²³ rounds to nearest, ties to even.
const ROUND: f32 = 12_582_912.0;

#[inline(always)]
fn quantise_block(x: &[f32; BLOCK], out: &mut Block) {
    let largest = x
        .iter()
        .fold(0_u32, |a, v| a.max(v.to_bits() & (u32::MAX >> 1)));
    let scale = f32::from_bits(largest) / 127.0;
    // The inverse of very small scales would be infinite.
    let inverse = if scale >= f32::MIN_POSITIVE {
        1.0 / scale
    } else {
        0.0
    };
    let finite = largest < f32::INFINITY.to_bits();
    let (scale, inverse) = if finite {
        (scale, inverse)
    } else {
        (f32::NAN, 0.0)
    };
    let mut halves = [0_i32; 2];
    let (x16, _) = x.as_chunks::<16>();
    let (out16, _) = out.codes.as_chunks_mut::<16>();
    for ((x, codes), half) in x16.iter().zip(out16).zip(&mut halves) {
        for (x, code) in x.iter().zip(codes) {
            // The low bits of the sum hold the rounded value. A block with a non-finite element has zero codes.
            let x = if finite { *x } else { 0.0 };
            let sum = x * inverse + ROUND;
            *code = (sum.to_bits() as u8).cast_signed();
            *half += i32::from(*code);
        }
    }
    out.scale = scale;
    out.sum = scale * (halves[0] + halves[1]) as f32;
    out.sum16 = halves.map(|s| scale * s as f32);
    out.negative = -(halves[0] + halves[1]);
    out.negative16 = halves.map(|s| -s);
}

struct Quantise<'a> {
    x: &'a [f32],
    out: &'a mut [Block],
}

#[expect(
    unsafe_code,
    reason = "the trait's function is unsafe; its body is safe"
)]
impl Kernel for Quantise<'_> {
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let (whole, rest) = self.x.as_chunks::<BLOCK>();
        for (x, out) in whole.iter().zip(&mut *self.out) {
            quantise_block(x, out);
        }
        if let Some(out) = self.out.get_mut(whole.len())
            && !rest.is_empty()
        {
            let mut x = [0.0; BLOCK];
            x[..rest.len()].copy_from_slice(rest);
            quantise_block(&x, out);
        }
    }
}

/// Quantises activations, one block per 32 elements of `x`: several rows, or whole blocks of rows.
///
/// # Errors
/// Returns [`ProductError::Length`] if the number of blocks does not match `x`.
pub fn quantise(isa: Isa, x: &[f32], out: &mut [Block]) -> Result<(), ProductError> {
    let expected = x.len().div_ceil(BLOCK);
    if out.len() != expected {
        return Err(ProductError::Length {
            what: "blocks of activations",
            expected,
            found: out.len(),
        });
    }
    isa.run(Quantise { x, out });
    Ok(())
}

struct Residual<'a> {
    x: &'a mut [f32],
    blocks: &'a [Block],
}

#[expect(
    unsafe_code,
    reason = "the trait's function is unsafe; its body is safe"
)]
impl Kernel for Residual<'_> {
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        for (x, block) in self.x.chunks_mut(BLOCK).zip(self.blocks) {
            for (x, code) in x.iter_mut().zip(&block.codes) {
                *x -= f32::from(*code) * block.scale;
            }
        }
    }
}

/// Subtracts the blocks' values from the activations. The quantised remainder is the second term. Two terms are as
/// accurate as 16-bit codes.
///
/// # Errors
/// Returns [`ProductError::Length`] if the number of blocks does not match `x`.
pub fn residual(isa: Isa, x: &mut [f32], blocks: &[Block]) -> Result<(), ProductError> {
    let expected = x.len().div_ceil(BLOCK);
    if blocks.len() != expected {
        return Err(ProductError::Length {
            what: "blocks of activations",
            expected,
            found: blocks.len(),
        });
    }
    isa.run(Residual { x, blocks });
    Ok(())
}

/// The rows that a product multiplies, one per token, without gaps.
#[derive(Clone, Copy, Debug)]
pub enum Activations<'a> {
    /// For quantised weights: `⌈k/32⌉` blocks per row.
    Quantised(&'a [Block]),
    /// For float weights: `k` elements per row.
    Float(&'a [f32]),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(x: &[f32]) -> Block {
        let mut out = [Block::ZERO];
        quantise(Isa::best(), x, &mut out).expect("a block");
        out[0]
    }

    #[test]
    fn codes_are_rounded_to_even() {
        let b = one(&[127.0, 0.5, 1.5, -0.5, -2.5, -127.0]);
        assert_eq!(b.codes[..6], [127, 0, 2, 0, -2, -127]);
        assert_eq!((b.scale, b.sum, b.negative), (1.0, 0.0, 0));
        assert_eq!(size_of::<Block>(), 64);
    }

    #[test]
    fn what_is_not_finite_makes_the_block_nan() {
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let b = one(&[1.0, bad, -2.0]);
            assert!(b.scale.is_nan() && b.sum.is_nan() && b.sum16[0].is_nan());
            assert_eq!(b.codes, [0; 32]);
        }
    }

    #[test]
    fn the_least_and_the_largest_numbers_have_codes() {
        assert_eq!(one(&[f32::MIN_POSITIVE]).value(0), 0.0);
        assert_eq!(one(&[f32::MAX, -f32::MAX]).codes[..2], [127, -127]);
    }

    fn numbers() -> Vec<f32> {
        let x = |i| ((i * 7919 % 1009) as f32 - 500.0) * 0.37;
        (0..1000).map(x).collect()
    }

    fn terms(isa: Isa, x: &[f32]) -> [Vec<Block>; 2] {
        let mut out = [(); 2].map(|()| vec![Block::ZERO; x.len().div_ceil(BLOCK)]);
        quantise(isa, x, &mut out[0]).expect("blocks");
        let mut rest = x.to_vec();
        residual(isa, &mut rest, &out[0]).expect("as many blocks");
        quantise(isa, &rest, &mut out[1]).expect("blocks");
        out
    }

    #[test]
    fn two_terms_have_sixteen_bits() {
        let x = numbers();
        let [first, second] = terms(Isa::best(), &x);
        for (i, x) in x.iter().enumerate() {
            let (b, e) = (i / BLOCK, i % BLOCK);
            let one = (x - first[b].value(e)).abs();
            let two = (x - first[b].value(e) - second[b].value(e)).abs();
            let step = first[b].scale;
            assert!(one <= 0.501 * step, "{one:e} of {step:e}");
            assert!(two <= step / 500.0, "{two:e} of {step:e}");
        }
        let bad = terms(Isa::best(), &[1.0, f32::INFINITY]);
        assert!(bad.iter().all(|b| b[0].scale.is_nan()));
        let error = residual(Isa::best(), &mut [0.0; 33], &first[..1]);
        assert!(matches!(error, Err(ProductError::Length { .. })));
    }

    #[test]
    fn every_instruction_set_gives_the_same_blocks() {
        let x = numbers();
        let of = |isa| terms(isa, &x);
        let expect = of(Isa::PORTABLE);
        for &isa in Isa::available() {
            assert!(of(isa) == expect, "{isa}");
        }
    }
}
