//! Decodes KV-cache formats in lanes. The bits equal [`tpc_runtime::quant::dequantise`], which defines the layouts.
#![allow(unsafe_code)]
#![allow(
    unsafe_op_in_unsafe_fn,
    reason = "the caller guarantees that the block is readable"
)]

use crate::lanes::{Lanes, Task, run};
use crate::math::{LANES, f16_to_f32, f32_to_f16};
use crate::simd::vectorised;
use tpc_ir::DType;

/// Elements per block.
pub(crate) const LEN: usize = 32;

/// ggml's `kvalues_iq4nl`, each plus 128.
const IQ4_NL: [u8; 16] = [
    1, 24, 45, 63, 79, 93, 106, 118, 129, 141, 153, 166, 181, 197, 217, 241,
];

trait Format {
    const BYTES: usize;

    /// # Safety
    /// The block is readable, and the machine has the instructions.
    unsafe fn block<S: Lanes>(block: *const u8) -> [S::F; 2];
}

#[inline(always)]
unsafe fn scale<S: Lanes>(block: *const u8, at: usize) -> S::F {
    let bytes = block.add(at).cast::<[u8; 2]>().read_unaligned();
    S::fsplat(f16_to_f32(u16::from_le_bytes(bytes)))
}

#[inline(always)]
unsafe fn nibbles<S: Lanes>(bytes: *const u8) -> [S::I; 2] {
    let bytes = S::u8x16(bytes);
    [S::and(bytes, S::splat(15)), S::shr(bytes, 4)]
}

/// Returns 16 for each set bit, otherwise 0. Element `j` is bit `j` of the four bytes.
#[inline(always)]
unsafe fn sixteens<S: Lanes>(high: *const u8) -> [S::F; 2] {
    const BITS: [i32; LANES] = [
        1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768,
    ];
    const FACTORS: [f32; LANES] = [
        16.0,
        8.0,
        4.0,
        2.0,
        1.0,
        0.5,
        0.25,
        0.125,
        0.062_5,
        0.031_25,
        0.015_625,
        0.007_812_5,
        0.003_906_25,
        0.001_953_125,
        0.000_976_562_5,
        0.000_488_281_25,
    ];
    let word = S::splat(i32::from_le_bytes(high.cast::<[u8; 4]>().read_unaligned()));
    let bits = S::load(BITS.as_ptr().cast());
    let factors = S::f32x16(FACTORS.as_ptr().cast());
    let low = S::to_f(S::and(word, bits));
    let high = S::to_f(S::and(S::shr(word, 16), bits));
    [S::fmul(low, factors), S::fmul(high, factors)]
}

/// `q · d`
struct Q8_0;

impl Format for Q8_0 {
    const BYTES: usize = 34;

    #[inline(always)]
    unsafe fn block<S: Lanes>(block: *const u8) -> [S::F; 2] {
        let d = scale::<S>(block, 0);
        let low = S::to_f(S::i8x16(block.add(2)));
        let high = S::to_f(S::i8x16(block.add(18)));
        [S::fmul(low, d), S::fmul(high, d)]
    }
}

/// `(q − 8) · d`
struct Q4_0;

impl Format for Q4_0 {
    const BYTES: usize = 18;

    #[inline(always)]
    unsafe fn block<S: Lanes>(block: *const u8) -> [S::F; 2] {
        let (d, zero) = (scale::<S>(block, 0), S::fsplat(-8.0));
        let [low, high] = nibbles::<S>(block.add(2));
        [
            S::fmul(S::fadd(S::to_f(low), zero), d),
            S::fmul(S::fadd(S::to_f(high), zero), d),
        ]
    }
}

/// `q · d + m`
struct Q4_1;

impl Format for Q4_1 {
    const BYTES: usize = 20;

    #[inline(always)]
    unsafe fn block<S: Lanes>(block: *const u8) -> [S::F; 2] {
        let (d, m) = (scale::<S>(block, 0), scale::<S>(block, 2));
        let [low, high] = nibbles::<S>(block.add(4));
        [
            S::fadd(S::fmul(S::to_f(low), d), m),
            S::fadd(S::fmul(S::to_f(high), d), m),
        ]
    }
}

/// `(q − 16) · d`
struct Q5_0;

impl Format for Q5_0 {
    const BYTES: usize = 22;

    #[inline(always)]
    unsafe fn block<S: Lanes>(block: *const u8) -> [S::F; 2] {
        let (d, zero) = (scale::<S>(block, 0), S::fsplat(-16.0));
        let [a, b] = sixteens::<S>(block.add(2));
        let [low, high] = nibbles::<S>(block.add(6));
        [
            S::fmul(S::fadd(S::fadd(S::to_f(low), a), zero), d),
            S::fmul(S::fadd(S::fadd(S::to_f(high), b), zero), d),
        ]
    }
}

/// `q · d + m`
struct Q5_1;

impl Format for Q5_1 {
    const BYTES: usize = 24;

    #[inline(always)]
    unsafe fn block<S: Lanes>(block: *const u8) -> [S::F; 2] {
        let (d, m) = (scale::<S>(block, 0), scale::<S>(block, 2));
        let [a, b] = sixteens::<S>(block.add(4));
        let [low, high] = nibbles::<S>(block.add(8));
        [
            S::fadd(S::fmul(S::fadd(S::to_f(low), a), d), m),
            S::fadd(S::fmul(S::fadd(S::to_f(high), b), d), m),
        ]
    }
}

/// `d · VALUES[q]`
struct Iq4Nl;

impl Format for Iq4Nl {
    const BYTES: usize = 18;

    #[inline(always)]
    unsafe fn block<S: Lanes>(block: *const u8) -> [S::F; 2] {
        let (d, zero) = (scale::<S>(block, 0), S::fsplat(-128.0));
        let (table, first) = (S::splat16(&IQ4_NL), S::splat(255));
        let [low, high] = nibbles::<S>(block.add(2));
        let low = S::to_f(S::and(S::lookup(table, low), first));
        let high = S::to_f(S::and(S::lookup(table, high), first));
        [
            S::fmul(S::fadd(low, zero), d),
            S::fmul(S::fadd(high, zero), d),
        ]
    }
}

struct F32;

impl Format for F32 {
    const BYTES: usize = 128;

    #[inline(always)]
    unsafe fn block<S: Lanes>(block: *const u8) -> [S::F; 2] {
        [S::f32x16(block), S::f32x16(block.add(64))]
    }
}

struct F16;

impl Format for F16 {
    const BYTES: usize = 64;

    #[inline(always)]
    unsafe fn block<S: Lanes>(block: *const u8) -> [S::F; 2] {
        [S::f16x16(block), S::f16x16(block.add(32))]
    }
}

struct Bf16;

impl Format for Bf16 {
    const BYTES: usize = 64;

    #[inline(always)]
    unsafe fn block<S: Lanes>(block: *const u8) -> [S::F; 2] {
        [S::bf16x16(block), S::bf16x16(block.add(32))]
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Rows {
    pub(crate) from: *const u8,
    /// Bytes between rows.
    pub(crate) stride: usize,
    pub(crate) count: usize,
    pub(crate) blocks: usize,
    /// Rows to prefetch, possibly beyond the end.
    pub(crate) ahead: usize,
}

struct Decode<F> {
    rows: Rows,
    out: *mut f32,
    width: usize,
    format: std::marker::PhantomData<F>,
}

impl<F: Format> Task for Decode<F> {
    #[inline(always)]
    unsafe fn run<S: Lanes>(self) {
        let rows = self.rows;
        for r in 0..rows.count {
            let from = rows.from.wrapping_add(r * rows.stride);
            if rows.ahead > 0 {
                let next = from.wrapping_add(rows.ahead * rows.stride);
                for at in (0..rows.blocks * F::BYTES).step_by(64) {
                    S::prefetch(next.wrapping_add(at));
                }
            }
            let to = self.out.add(r * self.width);
            for i in 0..rows.blocks {
                let [low, high] = F::block::<S>(from.add(i * F::BYTES));
                S::fstore(to.add(i * LEN), low);
                S::fstore(to.add(i * LEN + LANES), high);
            }
        }
    }
}

/// Decodes rows to f32 rows that are `width` apart. Returns `false` if the format is not supported.
///
/// # Safety
/// The rows are readable. `out` has [`LEN`] elements per block.
pub(crate) unsafe fn decode_rows(dtype: DType, rows: Rows, out: *mut f32, width: usize) -> bool {
    macro_rules! decode {
        ($format:ty) => {
            run(Decode {
                rows,
                out,
                width,
                format: std::marker::PhantomData::<$format>,
            })
        };
    }
    match dtype {
        DType::F32 => decode!(F32),
        DType::F16 => decode!(F16),
        DType::Bf16 => decode!(Bf16),
        DType::Q8_0 => decode!(Q8_0),
        DType::Q4_0 => decode!(Q4_0),
        DType::Q4_1 => decode!(Q4_1),
        DType::Q5_0 => decode!(Q5_0),
        DType::Q5_1 => decode!(Q5_1),
        DType::Iq4Nl => decode!(Iq4Nl),
        _ => return false,
    }
    true
}

vectorised! {
    /// Encodes whole q8_0 blocks, up to the end of the shorter slice, like [`tpc_runtime::quant::quantise_into`].
    pub(crate) fn encode_q8_0(values: &[f32], out: &mut [u8]) {
        let (rows, _) = values.as_chunks::<LEN>();
        let (blocks, _) = out.as_chunks_mut::<{ Q8_0::BYTES }>();
        for (x, block) in rows.iter().zip(blocks) {
            let mut most = [0.0_f32; LANES];
            for half in x.as_chunks::<LANES>().0 {
                for (most, x) in most.iter_mut().zip(half) {
                    *most = if x.abs() > *most { x.abs() } else { *most };
                }
            }
            let most = most.into_iter().fold(0.0_f32, |a, b| if b > a { b } else { a });
            let d = most / 127.0;
            let inverse = if most == 0.0 { 0.0 } else { 127.0 / most };
            let [low, high, codes @ ..] = block;
            [*low, *high] = f32_to_f16(d).to_le_bytes();
            for (q, x) in codes.iter_mut().zip(x) {
                *q = ((x * inverse).round_ties_even() as i8).cast_unsigned();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tpc_runtime::quant::{dequantise, quantise_into};

    #[test]
    fn blocks_have_the_bits_of_the_definition() {
        let mut x = 1_u32;
        for dtype in tpc_op_cases::CACHES {
            let unit = LEN / dtype.block_len() as usize * dtype.block_bytes() as usize;
            let bytes: Vec<u8> = (0..64 * unit)
                .map(|_| {
                    x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    (x >> 24) as u8
                })
                .collect();
            let (mut found, mut wanted) = ([0.0; 64 * LEN], [0.0; 64 * LEN]);
            let rows = Rows {
                from: bytes.as_ptr(),
                stride: 4 * unit,
                count: 16,
                blocks: 4,
                ahead: 2,
            };
            // SAFETY: both hold 64 blocks.
            assert!(unsafe { decode_rows(dtype, rows, found.as_mut_ptr(), 4 * LEN) });
            dequantise(dtype, &bytes, &mut wanted).expect("a decoder");
            for (f, w) in found.iter().zip(&wanted) {
                let same = f.to_bits() == w.to_bits() || f.is_nan() && w.is_nan();
                assert!(same, "{dtype}: {f} {w}");
            }
        }
    }

    #[test]
    fn codes_of_q8_0_have_the_bits_of_the_definition() {
        let mut x = 1_u32;
        for scale in [0.0, 1e-9, 0.01, 1.0, 300.0, 6e4] {
            let mut values: Vec<f32> = (0..64 * LEN)
                .map(|_| {
                    x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    ((x >> 8) as f32 / 8_388_608.0 - 1.0) * scale
                })
                .collect();
            // With 127 as the largest value, codes equal the numbers.
            for (i, v) in values[..LEN].iter_mut().enumerate() {
                *v = if i == 0 { 127.0 } else { i as f32 - 16.5 };
            }
            let (mut found, mut wanted) = (vec![0; 64 * 34], vec![0; 64 * 34]);
            encode_q8_0(&values, &mut found);
            quantise_into(DType::Q8_0, &values, &mut wanted).expect("an encoder");
            assert!(found == wanted, "{scale}");
        }
    }
}
