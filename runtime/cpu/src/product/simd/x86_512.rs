//! AVX-512 with VNNI. A vector is one register.
#![expect(unsafe_code, reason = "intrinsics")]
#![allow(
    unsafe_op_in_unsafe_fn,
    reason = "the functions are intrinsics with the trait's contract"
)]

use super::{Kernel, Simd, Width};
use std::arch::x86_64::*;

/// AVX-512 F, BW, DQ, VL and VNNI.
#[derive(Clone, Copy)]
pub(crate) struct Avx512;

impl Avx512 {
    pub(in crate::product) fn available() -> bool {
        is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512vnni")
    }
}

/// Compiles a kernel for AVX-512.
///
/// # Safety
/// Same as [`Kernel::run`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
unsafe fn enter<K: Kernel>(kernel: K) {
    // SAFETY: caller's contract.
    unsafe { kernel.run::<Avx512>() }
}

/// See [`Simd::settled`].
#[inline]
#[target_feature(enable = "avx512f")]
fn settled(mut a: __m512i) -> __m512i {
    // SAFETY: no instruction is emitted. To the compiler, the statement reads and writes the register and memory, so
    // other accesses do not move across it.
    unsafe { std::arch::asm!("/* {0} */", inout(zmm_reg) a, options(nostack, preserves_flags)) };
    a
}

// SAFETY of all functions: the trait has the same contract as the intrinsics.
impl Simd for Avx512 {
    type I = __m512i;
    type F = __m512;
    const TOKENS: usize = 6;
    const PANELS: usize = 2;
    const CHAINS: bool = false;
    const FEW: usize = 192;

    #[inline(always)]
    unsafe fn enter<K: Kernel>(kernel: K) {
        enter(kernel);
    }
    #[inline(always)]
    unsafe fn load(p: *const u8) -> __m512i {
        _mm512_loadu_si512(p.cast())
    }
    #[inline(always)]
    unsafe fn store(p: *mut u8, v: __m512i) {
        _mm512_storeu_si512(p.cast(), v);
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
    unsafe fn splat(v: i32) -> __m512i {
        _mm512_set1_epi32(v)
    }
    #[inline(always)]
    unsafe fn splat4(p: *const i8) -> __m512i {
        _mm512_set1_epi32(p.cast::<i32>().read_unaligned())
    }
    #[inline(always)]
    unsafe fn splat16(p: &[u8; 16]) -> __m512i {
        _mm512_broadcast_i32x4(_mm_loadu_si128(p.as_ptr().cast()))
    }
    #[inline(always)]
    unsafe fn and(a: __m512i, b: __m512i) -> __m512i {
        _mm512_and_si512(a, b)
    }
    #[inline(always)]
    unsafe fn or(a: __m512i, b: __m512i) -> __m512i {
        _mm512_or_si512(a, b)
    }
    #[inline(always)]
    unsafe fn xor(a: __m512i, b: __m512i) -> __m512i {
        _mm512_xor_si512(a, b)
    }
    #[inline(always)]
    unsafe fn add(a: __m512i, b: __m512i) -> __m512i {
        _mm512_add_epi32(a, b)
    }
    #[inline(always)]
    unsafe fn max(a: __m512i, b: __m512i) -> __m512i {
        _mm512_max_epi32(a, b)
    }
    #[inline(always)]
    unsafe fn shl(a: __m512i, n: u32) -> __m512i {
        _mm512_sll_epi32(a, _mm_cvtsi32_si128(n.cast_signed()))
    }
    #[inline(always)]
    unsafe fn shr(a: __m512i, n: u32) -> __m512i {
        _mm512_srl_epi32(a, _mm_cvtsi32_si128(n.cast_signed()))
    }
    #[inline(always)]
    unsafe fn lookup(table: __m512i, index: __m512i) -> __m512i {
        _mm512_shuffle_epi8(table, index)
    }
    #[inline(always)]
    unsafe fn u8x16(p: *const u8) -> __m512i {
        _mm512_cvtepu8_epi32(_mm_loadu_si128(p.cast()))
    }
    #[inline(always)]
    unsafe fn i8x16(p: *const u8) -> __m512i {
        _mm512_cvtepi8_epi32(_mm_loadu_si128(p.cast()))
    }
    #[inline(always)]
    unsafe fn start(_: Width, negative: i32, log2: u32) -> __m512i {
        _mm512_set1_epi32(negative << log2)
    }
    #[inline(always)]
    unsafe fn dot(_: Width, acc: __m512i, w: __m512i, x: __m512i) -> __m512i {
        _mm512_dpbusd_epi32(acc, w, x)
    }
    #[inline(always)]
    unsafe fn link(pairs: Self::I, w: Self::I, x: Self::I) -> Self::I {
        _mm512_add_epi16(pairs, _mm512_maddubs_epi16(w, x))
    }
    #[inline(always)]
    unsafe fn widen(acc: Self::I, pairs: Self::I) -> Self::I {
        _mm512_add_epi32(acc, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)))
    }
    #[inline(always)]
    unsafe fn settled(a: __m512i) -> __m512i {
        settled(a)
    }
    #[inline(always)]
    unsafe fn to_f(a: __m512i) -> __m512 {
        _mm512_cvtepi32_ps(a)
    }
    #[inline(always)]
    unsafe fn bits(a: __m512i) -> __m512 {
        _mm512_castsi512_ps(a)
    }
    #[inline(always)]
    unsafe fn fsplat(v: f32) -> __m512 {
        _mm512_set1_ps(v)
    }
    #[inline(always)]
    unsafe fn f32x16(p: *const u8) -> __m512 {
        _mm512_loadu_ps(p.cast())
    }
    #[inline(always)]
    unsafe fn f16x16(p: *const u8) -> __m512 {
        _mm512_cvtph_ps(_mm256_loadu_si256(p.cast()))
    }
    #[inline(always)]
    unsafe fn bf16x16(p: *const u8) -> __m512 {
        let half = _mm512_cvtepu16_epi32(_mm256_loadu_si256(p.cast()));
        _mm512_castsi512_ps(_mm512_slli_epi32::<16>(half))
    }
    #[inline(always)]
    unsafe fn fstore(p: *mut f32, v: __m512) {
        _mm512_storeu_ps(p, v);
    }
    #[inline(always)]
    unsafe fn fadd(a: __m512, b: __m512) -> __m512 {
        _mm512_add_ps(a, b)
    }
    #[inline(always)]
    unsafe fn fmul(a: __m512, b: __m512) -> __m512 {
        _mm512_mul_ps(a, b)
    }
    #[inline(always)]
    unsafe fn fma(a: __m512, b: __m512, c: __m512) -> __m512 {
        _mm512_fmadd_ps(a, b, c)
    }
}
