//! Scales and minima of a step, for 16 rows.
//!
//! A *slot* holds one number per row: 16 bytes, or 16 f16. Six-bit numbers are split into the low four and the high
//! two bits. The low bits of number `n` of 16 are in slot `n % 4 + 4·(n / 8)`, in half `n / 4 % 2` of the byte (0 is
//! low). The high bits are in slot `8 + n % 4` at bit `2·(n / 4)`.
#![expect(unsafe_code, reason = "kernels")]
#![allow(unsafe_op_in_unsafe_fn, reason = "every head has HEAD bytes")]

use super::{ROWS, Scales};
use crate::product::simd::Simd;

fn put_f16(block: &[u8], from: usize, slot: &mut [u8], row: usize) {
    slot[2 * row..2 * row + 2].copy_from_slice(&block[from..from + 2]);
}

#[inline(always)]
unsafe fn negated<S: Simd>(v: S::F) -> S::F {
    S::fmul(v, S::fsplat(-1.0))
}

#[derive(Clone, Copy)]
pub(in crate::product) struct At(*const u8);

/// An f16 scale per 32 elements, at byte `FROM` of the file block.
pub(in crate::product) struct F16<const FROM: usize>;

impl<const FROM: usize> Scales for F16<FROM> {
    const SUB: usize = 32;
    const MIN: bool = false;
    const PER_BLOCK: bool = true;
    const HEAD: usize = 32;
    const BEHIND: usize = 0;
    type Head<S: Simd> = At;
    fn put(block: &[u8], index: usize, row: usize, head: &mut [u8], _: &mut [u8]) {
        put_f16(block, FROM, &mut head[32 * index..], row);
    }
    #[inline(always)]
    unsafe fn head<S: Simd>(head: *const u8, _: *const u8) -> At {
        At(head)
    }
    #[inline(always)]
    unsafe fn scale<S: Simd>(head: &At, b: usize, _: usize) -> S::F {
        S::f16x16(head.0.add(32 * b))
    }
    #[inline(always)]
    unsafe fn min<S: Simd>(_: &At, _: usize, _: usize) -> S::F {
        S::fsplat(0.0)
    }
}

/// An f16 scale and an f16 minimum per 32 elements.
pub(in crate::product) struct F16Min;

impl Scales for F16Min {
    const SUB: usize = 32;
    const MIN: bool = true;
    const PER_BLOCK: bool = true;
    const HEAD: usize = 64;
    const BEHIND: usize = 0;
    type Head<S: Simd> = At;
    fn put(block: &[u8], index: usize, row: usize, head: &mut [u8], _: &mut [u8]) {
        put_f16(block, 0, &mut head[64 * index..], row);
        put_f16(block, 2, &mut head[64 * index + 32..], row);
    }
    #[inline(always)]
    unsafe fn head<S: Simd>(head: *const u8, _: *const u8) -> At {
        At(head)
    }
    #[inline(always)]
    unsafe fn scale<S: Simd>(head: &At, b: usize, _: usize) -> S::F {
        S::f16x16(head.0.add(64 * b))
    }
    #[inline(always)]
    unsafe fn min<S: Simd>(head: &At, b: usize, _: usize) -> S::F {
        S::f16x16(head.0.add(64 * b + 32))
    }
}

/// An e8m0 number per 32 elements (mxfp4). The scale is half the number, `2^(e - 128)`.
pub(in crate::product) struct E8m0;

impl Scales for E8m0 {
    const SUB: usize = 32;
    const MIN: bool = false;
    const PER_BLOCK: bool = true;
    const HEAD: usize = ROWS;
    const BEHIND: usize = 0;
    type Head<S: Simd> = At;
    fn put(block: &[u8], index: usize, row: usize, head: &mut [u8], _: &mut [u8]) {
        head[ROWS * index + row] = block[0];
    }
    #[inline(always)]
    unsafe fn head<S: Simd>(head: *const u8, _: *const u8) -> At {
        At(head)
    }
    /// Computes the f32 bits: `(e - 1) << 23`, or `(e + 1) << 21` for the two subnormals. The maximum of both is
    /// correct, because the second is smaller for all other codes.
    #[inline(always)]
    unsafe fn scale<S: Simd>(head: &At, b: usize, _: usize) -> S::F {
        let e = S::u8x16(head.0.add(ROWS * b));
        let normal = S::shl(S::add(e, S::splat(-1)), 23);
        let subnormal = S::shl(S::add(e, S::splat(1)), 21);
        S::bits(S::max(normal, subnormal))
    }
    #[inline(always)]
    unsafe fn min<S: Simd>(_: &At, _: usize, _: usize) -> S::F {
        S::fsplat(0.0)
    }
}

/// A ue4m3 number per 16 elements (nvfp4). The scale is half the number. NaN is stored as zero.
pub(in crate::product) struct Ue4m3;

impl Scales for Ue4m3 {
    const SUB: usize = 16;
    const MIN: bool = false;
    const PER_BLOCK: bool = true;
    const HEAD: usize = 2 * ROWS;
    const BEHIND: usize = 0;
    type Head<S: Simd> = At;
    fn put(block: &[u8], index: usize, row: usize, head: &mut [u8], _: &mut [u8]) {
        for (j, &d) in block[..4].iter().enumerate() {
            head[ROWS * (4 * index + j) + row] = if d == 0x7f { 0 } else { d & 0x7f };
        }
    }
    #[inline(always)]
    unsafe fn head<S: Simd>(head: *const u8, _: *const u8) -> At {
        At(head)
    }
    /// Reads e4m3 bits as an f32: the value times 2^-120, including subnormals.
    #[inline(always)]
    unsafe fn scale<S: Simd>(head: &At, b: usize, j: usize) -> S::F {
        let d = S::u8x16(head.0.add(ROWS * (2 * b + j)));
        S::fmul(S::bits(S::shl(d, 20)), S::fsplat(f32::from_bits(246 << 23)))
    }
    #[inline(always)]
    unsafe fn min<S: Simd>(_: &At, _: usize, _: usize) -> S::F {
        S::fsplat(0.0)
    }
}

/// One f16 scale per 256 elements, at byte `FROM` of the file block.
pub(in crate::product) struct Whole<const FROM: usize>;

impl<const FROM: usize> Scales for Whole<FROM> {
    const SUB: usize = 32;
    const MIN: bool = false;
    const PER_BLOCK: bool = false;
    const HEAD: usize = 0;
    const BEHIND: usize = 32;
    type Head<S: Simd> = S::F;
    fn put(block: &[u8], _: usize, row: usize, _: &mut [u8], behind: &mut [u8]) {
        put_f16(block, FROM, behind, row);
    }
    #[inline(always)]
    unsafe fn head<S: Simd>(_: *const u8, behind: *const u8) -> S::F {
        S::f16x16(behind)
    }
    #[inline(always)]
    unsafe fn scale<S: Simd>(head: &S::F, _: usize, _: usize) -> S::F {
        *head
    }
    #[inline(always)]
    unsafe fn min<S: Simd>(_: &S::F, _: usize, _: usize) -> S::F {
        S::fsplat(0.0)
    }
}

/// One f32 scale per 256 elements (q8_k).
pub(in crate::product) struct WholeF32;

impl Scales for WholeF32 {
    const SUB: usize = 32;
    const MIN: bool = false;
    const PER_BLOCK: bool = false;
    const HEAD: usize = 64;
    const BEHIND: usize = 0;
    type Head<S: Simd> = S::F;
    fn put(block: &[u8], _: usize, row: usize, head: &mut [u8], _: &mut [u8]) {
        head[4 * row..4 * row + 4].copy_from_slice(&block[..4]);
    }
    #[inline(always)]
    unsafe fn head<S: Simd>(head: *const u8, _: *const u8) -> S::F {
        S::f32x16(head)
    }
    #[inline(always)]
    unsafe fn scale<S: Simd>(head: &S::F, _: usize, _: usize) -> S::F {
        *head
    }
    #[inline(always)]
    unsafe fn min<S: Simd>(_: &S::F, _: usize, _: usize) -> S::F {
        S::fsplat(0.0)
    }
}

/// An f16 scale per `N` elements, with several scales per step (q1_0, q2_0).
pub(in crate::product) struct Each<const N: usize>;

impl<const N: usize> Scales for Each<N> {
    const SUB: usize = 32;
    const MIN: bool = false;
    const PER_BLOCK: bool = false;
    const HEAD: usize = 256 / N * 2 * ROWS;
    const BEHIND: usize = 0;
    type Head<S: Simd> = At;
    fn put(block: &[u8], index: usize, row: usize, head: &mut [u8], _: &mut [u8]) {
        put_f16(block, 0, &mut head[2 * ROWS * index..], row);
    }
    #[inline(always)]
    unsafe fn head<S: Simd>(head: *const u8, _: *const u8) -> At {
        At(head)
    }
    #[inline(always)]
    unsafe fn scale<S: Simd>(head: &At, b: usize, _: usize) -> S::F {
        S::f16x16(head.0.add(2 * ROWS * (b / (N / 32))))
    }
    #[inline(always)]
    unsafe fn min<S: Simd>(_: &At, _: usize, _: usize) -> S::F {
        S::fsplat(0.0)
    }
}

const SIX: usize = 192;

fn put_six(numbers: [u8; 16], row: usize, out: &mut [u8]) {
    for (n, number) in numbers.into_iter().enumerate() {
        let nibble = ROWS * (n % 4 + 4 * (n / 8)) + row;
        out[nibble] |= (number & 15) << (4 * (n / 4 % 2));
        out[ROWS * (8 + n % 4) + row] |= (number >> 4) << (2 * (n / 4));
    }
}

/// 16 six-bit numbers for each of 16 rows, one byte each.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct SixBits([u8; 16 * ROWS]);

#[inline(always)]
unsafe fn get_six<S: Simd>(p: *const u8) -> SixBits {
    let (a, b, pairs) = (S::load(p), S::load(p.add(64)), S::load(p.add(128)));
    let (low, high) = (S::splat(0x0f0f_0f0f), S::splat(0x3030_3030));
    let mut out = SixBits([0; 256]);
    let to = out.0.as_mut_ptr();
    let join = |nibbles, pairs| S::or(S::and(nibbles, low), S::and(pairs, high));
    S::store(to, join(a, S::shl(pairs, 4)));
    S::store(to.add(64), join(S::shr(a, 4), S::shl(pairs, 2)));
    S::store(to.add(128), join(b, pairs));
    S::store(to.add(192), join(S::shr(b, 4), S::shr(pairs, 2)));
    out
}

/// Returns the 8 scales and 8 minima of q4_k and q5_k, 6 bits each, from bytes 4 to 16 of the file block.
fn six_of_k(packed: &[u8]) -> [u8; 16] {
    std::array::from_fn(|n| {
        let (j, at) = (n % 8, 4 * (n / 8));
        if j < 4 {
            packed[at + j] & 63
        } else {
            let low = packed[4 + j] >> at & 15;
            low | packed[at + j - 4] >> 6 << 4
        }
    })
}

/// Two f16 per 256 elements, and a six-bit scale and minimum per 32 (q4_k, q5_k).
pub(in crate::product) struct K32;

#[derive(Clone, Copy)]
pub(in crate::product) struct K32Head<F> {
    d: F,
    negative_dmin: F,
    numbers: SixBits,
}

impl Scales for K32 {
    const SUB: usize = 32;
    const MIN: bool = true;
    const PER_BLOCK: bool = false;
    const HEAD: usize = 64 + SIX;
    const BEHIND: usize = 0;
    type Head<S: Simd> = K32Head<S::F>;
    fn put(block: &[u8], _: usize, row: usize, head: &mut [u8], _: &mut [u8]) {
        put_f16(block, 0, head, row);
        put_f16(block, 2, &mut head[32..], row);
        put_six(six_of_k(&block[4..16]), row, &mut head[64..]);
    }
    #[inline(always)]
    unsafe fn head<S: Simd>(head: *const u8, _: *const u8) -> K32Head<S::F> {
        K32Head {
            d: S::f16x16(head),
            negative_dmin: negated::<S>(S::f16x16(head.add(32))),
            numbers: get_six::<S>(head.add(64)),
        }
    }
    #[inline(always)]
    unsafe fn scale<S: Simd>(head: &K32Head<S::F>, b: usize, _: usize) -> S::F {
        let n = S::u8x16(head.numbers.0.as_ptr().add(ROWS * b));
        S::fmul(head.d, S::to_f(n))
    }
    #[inline(always)]
    unsafe fn min<S: Simd>(head: &K32Head<S::F>, b: usize, _: usize) -> S::F {
        let n = S::u8x16(head.numbers.0.as_ptr().add(ROWS * (8 + b)));
        S::fmul(head.negative_dmin, S::to_f(n))
    }
}

/// An f16 per 256 elements, and a signed byte per 16 (q6_k).
pub(in crate::product) struct K16Bytes;

/// The scale of 256 elements, and the address of the smaller scales.
#[derive(Clone, Copy)]
pub(in crate::product) struct Scaled<F> {
    pub(super) d: F,
    pub(super) head: *const u8,
}

impl<F: Copy> Scaled<F> {
    /// Returns each row's unsigned number `n` times the row's scale.
    ///
    /// # Safety
    /// Same as [`Simd`]; the head has more than `n` numbers.
    #[inline(always)]
    pub(super) unsafe fn times_u8<S: Simd<F = F>>(&self, n: usize) -> F {
        S::fmul(self.d, S::to_f(S::u8x16(self.head.add(ROWS * n))))
    }
}

impl Scales for K16Bytes {
    const SUB: usize = 16;
    const MIN: bool = false;
    const PER_BLOCK: bool = false;
    const HEAD: usize = 16 * ROWS;
    const BEHIND: usize = 32;
    type Head<S: Simd> = Scaled<S::F>;
    fn put(block: &[u8], _: usize, row: usize, head: &mut [u8], behind: &mut [u8]) {
        for (j, &scale) in block[192..208].iter().enumerate() {
            head[ROWS * j + row] = scale;
        }
        put_f16(block, 208, behind, row);
    }
    #[inline(always)]
    unsafe fn head<S: Simd>(head: *const u8, behind: *const u8) -> Scaled<S::F> {
        Scaled {
            d: S::f16x16(behind),
            head,
        }
    }
    #[inline(always)]
    unsafe fn scale<S: Simd>(head: &Scaled<S::F>, b: usize, j: usize) -> S::F {
        let n = S::i8x16(head.head.add(ROWS * (2 * b + j)));
        S::fmul(head.d, S::to_f(n))
    }
    #[inline(always)]
    unsafe fn min<S: Simd>(_: &Scaled<S::F>, _: usize, _: usize) -> S::F {
        S::fsplat(0.0)
    }
}

/// An f16 per 256 elements, and a six-bit scale with offset 32 per 16 (q3_k).
pub(in crate::product) struct K16Six;

#[derive(Clone, Copy)]
pub(in crate::product) struct K16SixHead<F> {
    d: F,
    numbers: SixBits,
}

/// Returns the 16 scales of q3_k, from bytes 96 to 108 of the file block.
fn six_of_q3_k(packed: &[u8]) -> [u8; 16] {
    std::array::from_fn(|j| {
        let low = packed[j % 8] >> (4 * (j / 8)) & 15;
        low | (packed[8 + j % 4] >> (2 * (j / 4)) & 3) << 4
    })
}

impl Scales for K16Six {
    const SUB: usize = 16;
    const MIN: bool = false;
    const PER_BLOCK: bool = false;
    const HEAD: usize = SIX;
    const BEHIND: usize = 32;
    type Head<S: Simd> = K16SixHead<S::F>;
    fn put(block: &[u8], _: usize, row: usize, head: &mut [u8], behind: &mut [u8]) {
        put_six(six_of_q3_k(&block[96..108]), row, head);
        put_f16(block, 108, behind, row);
    }
    #[inline(always)]
    unsafe fn head<S: Simd>(head: *const u8, behind: *const u8) -> K16SixHead<S::F> {
        K16SixHead {
            d: S::f16x16(behind),
            numbers: get_six::<S>(head),
        }
    }
    #[inline(always)]
    unsafe fn scale<S: Simd>(head: &K16SixHead<S::F>, b: usize, j: usize) -> S::F {
        let n = S::u8x16(head.numbers.0.as_ptr().add(ROWS * (2 * b + j)));
        S::fmul(head.d, S::to_f(S::add(n, S::splat(-32))))
    }
    #[inline(always)]
    unsafe fn min<S: Simd>(_: &K16SixHead<S::F>, _: usize, _: usize) -> S::F {
        S::fsplat(0.0)
    }
}

/// Two f16 per 256 elements, and a 4-bit scale and minimum per 16 (q2_k).
pub(in crate::product) struct K16Nibbles;

#[derive(Clone, Copy)]
pub(in crate::product) struct K16NibblesHead<F> {
    d: F,
    negative_dmin: F,
    head: *const u8,
}

impl Scales for K16Nibbles {
    const SUB: usize = 16;
    const MIN: bool = true;
    const PER_BLOCK: bool = false;
    const HEAD: usize = 64 + 16 * ROWS;
    const BEHIND: usize = 0;
    type Head<S: Simd> = K16NibblesHead<S::F>;
    fn put(block: &[u8], _: usize, row: usize, head: &mut [u8], _: &mut [u8]) {
        put_f16(block, 80, head, row);
        put_f16(block, 82, &mut head[32..], row);
        for (j, &numbers) in block[..16].iter().enumerate() {
            head[64 + ROWS * j + row] = numbers;
        }
    }
    #[inline(always)]
    unsafe fn head<S: Simd>(head: *const u8, _: *const u8) -> K16NibblesHead<S::F> {
        K16NibblesHead {
            d: S::f16x16(head),
            negative_dmin: negated::<S>(S::f16x16(head.add(32))),
            head: head.add(64),
        }
    }
    #[inline(always)]
    unsafe fn scale<S: Simd>(head: &K16NibblesHead<S::F>, b: usize, j: usize) -> S::F {
        let n = S::u8x16(head.head.add(ROWS * (2 * b + j)));
        S::fmul(head.d, S::to_f(S::and(n, S::splat(15))))
    }
    #[inline(always)]
    unsafe fn min<S: Simd>(head: &K16NibblesHead<S::F>, b: usize, j: usize) -> S::F {
        let n = S::u8x16(head.head.add(ROWS * (2 * b + j)));
        S::fmul(head.negative_dmin, S::to_f(S::shr(n, 4)))
    }
}

/// An f16 per 256 elements, and a six-bit scale with offset 32 per 32 (iq4_xs). The low four bits of number `n` of 8
/// are in slot `n % 4` of four, in half `n / 4` of the byte (0 is low). The high two bits are in slot `n % 2` of two
/// more slots, at bit `2·(n / 2)`.
pub(in crate::product) struct K32Six;

impl Scales for K32Six {
    const SUB: usize = 32;
    const MIN: bool = false;
    const PER_BLOCK: bool = false;
    const HEAD: usize = 32 + 4 * ROWS + 2 * ROWS;
    const BEHIND: usize = 0;
    type Head<S: Simd> = Scaled<S::F>;
    fn put(block: &[u8], _: usize, row: usize, head: &mut [u8], _: &mut [u8]) {
        put_f16(block, 0, head, row);
        let high = u16::from_le_bytes([block[2], block[3]]);
        for n in 0..8 {
            let low = block[4 + n / 2] >> (4 * (n % 2)) & 15;
            head[32 + ROWS * (n % 4) + row] |= low << (4 * (n / 4));
            let pair = (high >> (2 * n) & 3) as u8;
            head[96 + ROWS * (n % 2) + row] |= pair << (2 * (n / 2));
        }
    }
    #[inline(always)]
    unsafe fn head<S: Simd>(head: *const u8, _: *const u8) -> Scaled<S::F> {
        Scaled {
            d: S::f16x16(head),
            head: head.add(32),
        }
    }
    #[inline(always)]
    unsafe fn scale<S: Simd>(head: &Scaled<S::F>, b: usize, _: usize) -> S::F {
        let low = S::u8x16(head.head.add(ROWS * (b % 4)));
        let low = S::and(S::shr(low, 4 * (b as u32 / 4)), S::splat(15));
        let pair = S::u8x16(head.head.add(64 + ROWS * (b % 2)));
        let pair = S::and(S::shr(pair, 2 * (b as u32 / 2)), S::splat(3));
        let n = S::add(S::or(low, S::shl(pair, 4)), S::splat(-32));
        S::fmul(head.d, S::to_f(n))
    }
    #[inline(always)]
    unsafe fn min<S: Simd>(_: &Scaled<S::F>, _: usize, _: usize) -> S::F {
        S::fsplat(0.0)
    }
}
