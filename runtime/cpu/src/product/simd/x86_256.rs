//! AVX2 with FMA and F16C, and 256-bit VNNI if available. A vector is two registers.
#![expect(unsafe_code, reason = "intrinsics")]
#![allow(
    unsafe_op_in_unsafe_fn,
    reason = "the functions are intrinsics with the trait's contract"
)]

use super::{Kernel, Simd, Width};
use std::arch::x86_64::*;

/// AVX2, FMA and F16C, plus AVX-VNNI if `VNNI` is true.
#[derive(Clone, Copy)]
pub(crate) struct Avx2<const VNNI: bool>;

impl<const VNNI: bool> Avx2<VNNI> {
    pub(in crate::product) fn available() -> bool {
        is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("f16c")
            && (!VNNI || is_x86_feature_detected!("avxvnni"))
    }
}

/// Compiles a kernel without VNNI.
///
/// # Safety
/// Same as [`Kernel::run`].
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn enter_plain<K: Kernel>(kernel: K) {
    // SAFETY: caller's contract.
    unsafe { kernel.run::<Avx2<false>>() }
}

/// Compiles a kernel with VNNI.
///
/// # Safety
/// Same as [`Kernel::run`].
#[target_feature(enable = "avx2,fma,f16c,avxvnni")]
unsafe fn enter_vnni<K: Kernel>(kernel: K) {
    // SAFETY: caller's contract.
    unsafe { kernel.run::<Avx2<true>>() }
}

#[inline]
#[target_feature(enable = "avx2")]
fn settled(mut a: __m256i) -> __m256i {
    // SAFETY: no instruction is emitted. To the compiler, the statement reads and writes the register and memory, so
    // other accesses do not move across it.
    unsafe { std::arch::asm!("/* {0} */", inout(ymm_reg) a, options(nostack, preserves_flags)) };
    a
}

macro_rules! both {
    (|$($v:ident),+| $e:expr) => {
        [{ $(let $v = $v[0];)+ $e }, { $(let $v = $v[1];)+ $e }]
    };
}

// SAFETY of all functions: the trait has the same contract as the intrinsics.
impl<const VNNI: bool> Simd for Avx2<VNNI> {
    type I = [__m256i; 2];
    type F = [__m256; 2];
    const TOKENS: usize = 4;
    const PANELS: usize = 1;
    const CHAINS: bool = !VNNI;
    const FEW: usize = if VNNI { 192 } else { 7 };

    #[inline(always)]
    unsafe fn enter<K: Kernel>(kernel: K) {
        if VNNI {
            enter_vnni(kernel);
        } else {
            enter_plain(kernel);
        }
    }
    #[inline(always)]
    unsafe fn load(p: *const u8) -> Self::I {
        [
            _mm256_loadu_si256(p.cast()),
            _mm256_loadu_si256(p.add(32).cast()),
        ]
    }
    #[inline(always)]
    unsafe fn store(p: *mut u8, v: Self::I) {
        _mm256_storeu_si256(p.cast(), v[0]);
        _mm256_storeu_si256(p.add(32).cast(), v[1]);
    }
    #[inline(always)]
    unsafe fn prefetch(p: *const u8) {
        _mm_prefetch::<_MM_HINT_T1>(p.cast());
    }
    #[inline(always)]
    unsafe fn prefetch_near(p: *const u8) {
        _mm_prefetch::<_MM_HINT_T0>(p.cast());
    }
    #[inline(always)]
    unsafe fn splat(v: i32) -> Self::I {
        [_mm256_set1_epi32(v); 2]
    }
    #[inline(always)]
    unsafe fn splat4(p: *const i8) -> Self::I {
        [_mm256_set1_epi32(p.cast::<i32>().read_unaligned()); 2]
    }
    #[inline(always)]
    unsafe fn splat16(p: &[u8; 16]) -> Self::I {
        [_mm256_broadcastsi128_si256(_mm_loadu_si128(p.as_ptr().cast())); 2]
    }
    #[inline(always)]
    unsafe fn and(a: Self::I, b: Self::I) -> Self::I {
        both!(|a, b| _mm256_and_si256(a, b))
    }
    #[inline(always)]
    unsafe fn or(a: Self::I, b: Self::I) -> Self::I {
        both!(|a, b| _mm256_or_si256(a, b))
    }
    #[inline(always)]
    unsafe fn xor(a: Self::I, b: Self::I) -> Self::I {
        both!(|a, b| _mm256_xor_si256(a, b))
    }
    #[inline(always)]
    unsafe fn add(a: Self::I, b: Self::I) -> Self::I {
        both!(|a, b| _mm256_add_epi32(a, b))
    }
    #[inline(always)]
    unsafe fn max(a: Self::I, b: Self::I) -> Self::I {
        both!(|a, b| _mm256_max_epi32(a, b))
    }
    #[inline(always)]
    unsafe fn shl(a: Self::I, n: u32) -> Self::I {
        both!(|a| _mm256_sll_epi32(a, _mm_cvtsi32_si128(n.cast_signed())))
    }
    #[inline(always)]
    unsafe fn shr(a: Self::I, n: u32) -> Self::I {
        both!(|a| _mm256_srl_epi32(a, _mm_cvtsi32_si128(n.cast_signed())))
    }
    #[inline(always)]
    unsafe fn lookup(table: Self::I, index: Self::I) -> Self::I {
        both!(|table, index| _mm256_shuffle_epi8(table, index))
    }
    #[inline(always)]
    unsafe fn u8x16(p: *const u8) -> Self::I {
        let v = _mm_loadu_si128(p.cast());
        [
            _mm256_cvtepu8_epi32(v),
            _mm256_cvtepu8_epi32(_mm_unpackhi_epi64(v, v)),
        ]
    }
    #[inline(always)]
    unsafe fn i8x16(p: *const u8) -> Self::I {
        let v = _mm_loadu_si128(p.cast());
        [
            _mm256_cvtepi8_epi32(v),
            _mm256_cvtepi8_epi32(_mm_unpackhi_epi64(v, v)),
        ]
    }
    #[inline(always)]
    unsafe fn start(width: Width, negative: i32, log2: u32) -> Self::I {
        if VNNI {
            return Self::splat(negative << log2);
        }
        if width == Width::Wide {
            return Self::splat(0);
        }
        // The sum fits 16 bits. A product takes two instructions; a shift of the number before the broadcast takes four.
        let sum = _mm256_set1_epi32(negative);
        [_mm256_madd_epi16(sum, _mm256_set1_epi32(1 << log2)); 2]
    }
    /// Without VNNI, pairs of products are summed in 16 bits, which hold 2·127·127. Wide codes would exceed this, so
    /// `x` gets the code's sign and is multiplied by the code's magnitude above the offset; 2·128·127 fits.
    #[inline(always)]
    unsafe fn dot(width: Width, acc: Self::I, w: Self::I, x: Self::I) -> Self::I {
        if VNNI {
            return both!(|acc, w, x| _mm256_dpbusd_avx_epi32(acc, w, x));
        }
        let pairs = if width == Width::Wide {
            let w = Self::xor(w, [_mm256_set1_epi8(-128); 2]);
            both!(|w, x| _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(x, w)))
        } else {
            both!(|w, x| _mm256_maddubs_epi16(w, x))
        };
        let one = _mm256_set1_epi16(1);
        both!(|acc, pairs| _mm256_add_epi32(acc, _mm256_madd_epi16(pairs, one)))
    }
    #[inline(always)]
    unsafe fn link(pairs: Self::I, w: Self::I, x: Self::I) -> Self::I {
        both!(|pairs, w, x| _mm256_add_epi16(pairs, _mm256_maddubs_epi16(w, x)))
    }
    #[inline(always)]
    unsafe fn widen(acc: Self::I, pairs: Self::I) -> Self::I {
        let one = _mm256_set1_epi16(1);
        both!(|acc, pairs| _mm256_add_epi32(acc, _mm256_madd_epi16(pairs, one)))
    }
    #[inline(always)]
    unsafe fn settled(a: Self::I) -> Self::I {
        if VNNI { a } else { both!(|a| settled(a)) }
    }
    #[inline(always)]
    unsafe fn to_f(a: Self::I) -> Self::F {
        both!(|a| _mm256_cvtepi32_ps(a))
    }
    #[inline(always)]
    unsafe fn bits(a: Self::I) -> Self::F {
        both!(|a| _mm256_castsi256_ps(a))
    }
    #[inline(always)]
    unsafe fn fsplat(v: f32) -> Self::F {
        [_mm256_set1_ps(v); 2]
    }
    #[inline(always)]
    unsafe fn f32x16(p: *const u8) -> Self::F {
        [_mm256_loadu_ps(p.cast()), _mm256_loadu_ps(p.add(32).cast())]
    }
    #[inline(always)]
    unsafe fn f16x16(p: *const u8) -> Self::F {
        [
            _mm256_cvtph_ps(_mm_loadu_si128(p.cast())),
            _mm256_cvtph_ps(_mm_loadu_si128(p.add(16).cast())),
        ]
    }
    #[inline(always)]
    unsafe fn bf16x16(p: *const u8) -> Self::F {
        let p = [p, p.add(16)];
        let v = both!(|p| _mm256_cvtepu16_epi32(_mm_loadu_si128(p.cast())));
        both!(|v| _mm256_castsi256_ps(_mm256_slli_epi32::<16>(v)))
    }
    #[inline(always)]
    unsafe fn fstore(p: *mut f32, v: Self::F) {
        _mm256_storeu_ps(p, v[0]);
        _mm256_storeu_ps(p.add(8), v[1]);
    }
    #[inline(always)]
    unsafe fn fadd(a: Self::F, b: Self::F) -> Self::F {
        both!(|a, b| _mm256_add_ps(a, b))
    }
    #[inline(always)]
    unsafe fn fmul(a: Self::F, b: Self::F) -> Self::F {
        both!(|a, b| _mm256_mul_ps(a, b))
    }
    #[inline(always)]
    unsafe fn fma(a: Self::F, b: Self::F, c: Self::F) -> Self::F {
        both!(|a, b, c| _mm256_fmadd_ps(a, b, c))
    }
}
