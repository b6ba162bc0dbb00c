//! NEON, with the dot products of FEAT_DotProd or FEAT_I8MM if available. A vector is four registers.
//!
//! Source of the instructions: Arm Architecture Reference Manual for A-profile, C7 (SDOT, USDOT, FCVTL, TBL).
#![expect(unsafe_code, reason = "intrinsics")]
#![allow(
    unsafe_op_in_unsafe_fn,
    reason = "the functions are intrinsics with the trait's contract"
)]

use super::{Kernel, Simd, Width};
use std::arch::aarch64::*;
use std::arch::{asm, is_aarch64_feature_detected};

/// Products of 8 bits, widened in two steps.
pub(crate) const WIDENING: u8 = 0;
/// SDOT: dot products of four signed bytes.
pub(crate) const SIGNED: u8 = 1;
/// USDOT: dot products of four unsigned with four signed bytes.
pub(crate) const MIXED: u8 = 2;

/// NEON with one of the three dot products.
#[derive(Clone, Copy)]
pub(crate) struct Neon<const DOT: u8>;

impl<const DOT: u8> Neon<DOT> {
    pub(in crate::product) fn available() -> bool {
        match DOT {
            MIXED => is_aarch64_feature_detected!("i8mm"),
            SIGNED => is_aarch64_feature_detected!("dotprod"),
            _ => true,
        }
    }
}

/// Compiles a kernel with FEAT_DotProd.
///
/// # Safety
/// Same as [`Kernel::run`].
#[target_feature(enable = "neon,dotprod")]
unsafe fn enter_signed<K: Kernel>(kernel: K) {
    // SAFETY: caller's contract.
    unsafe { kernel.run::<Neon<SIGNED>>() }
}

/// Compiles a kernel with FEAT_I8MM.
///
/// # Safety
/// Same as [`Kernel::run`].
#[target_feature(enable = "neon,dotprod,i8mm")]
unsafe fn enter_mixed<K: Kernel>(kernel: K) {
    // SAFETY: caller's contract.
    unsafe { kernel.run::<Neon<MIXED>>() }
}

/// Applies an expression to each of the four registers.
macro_rules! each {
    (|$($v:ident),+| $e:expr) => {
        [
            { $(let $v = $v[0];)+ $e },
            { $(let $v = $v[1];)+ $e },
            { $(let $v = $v[2];)+ $e },
            { $(let $v = $v[3];)+ $e },
        ]
    };
}

/// Widens four half-precision numbers.
#[inline(always)]
unsafe fn widen(half: uint16x4_t) -> float32x4_t {
    let out: float32x4_t;
    // SAFETY: FCVTL reads and writes only these registers.
    asm!("fcvtl {out:v}.4s, {half:v}.4h", out = out(vreg) out, half = in(vreg) half,
        options(pure, nomem, nostack, preserves_flags));
    out
}

#[inline(always)]
unsafe fn sdot(mut acc: int32x4_t, w: int8x16_t, x: int8x16_t) -> int32x4_t {
    // SAFETY: SDOT reads and writes only these registers.
    asm!("sdot {acc:v}.4s, {w:v}.16b, {x:v}.16b", acc = inout(vreg) acc, w = in(vreg) w, x = in(vreg) x,
        options(pure, nomem, nostack, preserves_flags));
    acc
}

#[inline(always)]
unsafe fn usdot(mut acc: int32x4_t, w: uint8x16_t, x: int8x16_t) -> int32x4_t {
    // SAFETY: USDOT reads and writes only these registers.
    asm!("usdot {acc:v}.4s, {w:v}.16b, {x:v}.16b", acc = inout(vreg) acc, w = in(vreg) w, x = in(vreg) x,
        options(pure, nomem, nostack, preserves_flags));
    acc
}

/// Dot products of four signed bytes from widening multiplications.
#[inline(always)]
unsafe fn widening_dot(acc: int32x4_t, w: int8x16_t, x: int8x16_t) -> int32x4_t {
    let low = vpaddlq_s16(vmull_s8(vget_low_s8(w), vget_low_s8(x)));
    let high = vpaddlq_s16(vmull_high_s8(w, x));
    vaddq_s32(acc, vpaddq_s32(low, high))
}

// SAFETY of all functions: the trait has the same contract as the intrinsics.
impl<const DOT: u8> Simd for Neon<DOT> {
    type I = [int32x4_t; 4];
    type F = [float32x4_t; 4];
    const TOKENS: usize = 4;
    const PANELS: usize = 1;
    const CHAINS: bool = DOT == WIDENING;
    const FEW: usize = if DOT == WIDENING { 7 } else { 192 };

    #[inline(always)]
    unsafe fn enter<K: Kernel>(kernel: K) {
        match DOT {
            MIXED => enter_mixed(kernel),
            SIGNED => enter_signed(kernel),
            _ => kernel.run::<Neon<WIDENING>>(),
        }
    }
    #[inline(always)]
    unsafe fn load(p: *const u8) -> Self::I {
        let at = [p, p.add(16), p.add(32), p.add(48)];
        each!(|at| vreinterpretq_s32_u8(vld1q_u8(at)))
    }
    #[inline(always)]
    unsafe fn store(p: *mut u8, v: Self::I) {
        for (i, v) in v.into_iter().enumerate() {
            vst1q_u8(p.add(16 * i), vreinterpretq_u8_s32(v));
        }
    }
    #[inline(always)]
    unsafe fn prefetch(p: *const u8) {
        // SAFETY: PRFM ignores invalid addresses.
        asm!("prfm pldl2keep, [{p}]", p = in(reg) p, options(nostack, preserves_flags, readonly));
    }
    #[inline(always)]
    unsafe fn prefetch_near(p: *const u8) {
        // SAFETY: PRFM ignores invalid addresses.
        asm!("prfm pldl1keep, [{p}]", p = in(reg) p, options(nostack, preserves_flags, readonly));
    }
    #[inline(always)]
    unsafe fn splat(v: i32) -> Self::I {
        [vdupq_n_s32(v); 4]
    }
    #[inline(always)]
    unsafe fn splat4(p: *const i8) -> Self::I {
        [vdupq_n_s32(p.cast::<i32>().read_unaligned()); 4]
    }
    #[inline(always)]
    unsafe fn splat16(p: &[u8; 16]) -> Self::I {
        [vreinterpretq_s32_u8(vld1q_u8(p.as_ptr())); 4]
    }
    #[inline(always)]
    unsafe fn and(a: Self::I, b: Self::I) -> Self::I {
        each!(|a, b| vandq_s32(a, b))
    }
    #[inline(always)]
    unsafe fn or(a: Self::I, b: Self::I) -> Self::I {
        each!(|a, b| vorrq_s32(a, b))
    }
    #[inline(always)]
    unsafe fn xor(a: Self::I, b: Self::I) -> Self::I {
        each!(|a, b| veorq_s32(a, b))
    }
    #[inline(always)]
    unsafe fn add(a: Self::I, b: Self::I) -> Self::I {
        each!(|a, b| vaddq_s32(a, b))
    }
    #[inline(always)]
    unsafe fn max(a: Self::I, b: Self::I) -> Self::I {
        each!(|a, b| vmaxq_s32(a, b))
    }
    #[inline(always)]
    unsafe fn shl(a: Self::I, n: u32) -> Self::I {
        let n = vdupq_n_s32(n.cast_signed());
        each!(|a| vshlq_s32(a, n))
    }
    #[inline(always)]
    unsafe fn shr(a: Self::I, n: u32) -> Self::I {
        let n = vdupq_n_s32(-n.cast_signed());
        each!(|a| vreinterpretq_s32_u32(vshlq_u32(vreinterpretq_u32_s32(a), n)))
    }
    #[inline(always)]
    unsafe fn lookup(table: Self::I, index: Self::I) -> Self::I {
        let low = vdupq_n_u8(15);
        each!(|table, index| {
            let index = vandq_u8(vreinterpretq_u8_s32(index), low);
            vreinterpretq_s32_u8(vqtbl1q_u8(vreinterpretq_u8_s32(table), index))
        })
    }
    #[inline(always)]
    unsafe fn u8x16(p: *const u8) -> Self::I {
        let v = vld1q_u8(p);
        let (low, high) = (vmovl_u8(vget_low_u8(v)), vmovl_high_u8(v));
        let quarters = [
            vmovl_u16(vget_low_u16(low)),
            vmovl_high_u16(low),
            vmovl_u16(vget_low_u16(high)),
            vmovl_high_u16(high),
        ];
        each!(|quarters| vreinterpretq_s32_u32(quarters))
    }
    #[inline(always)]
    unsafe fn i8x16(p: *const u8) -> Self::I {
        let v = vld1q_s8(p.cast());
        let (low, high) = (vmovl_s8(vget_low_s8(v)), vmovl_high_s8(v));
        [
            vmovl_s16(vget_low_s16(low)),
            vmovl_high_s16(low),
            vmovl_s16(vget_low_s16(high)),
            vmovl_high_s16(high),
        ]
    }
    #[inline(always)]
    unsafe fn start(width: Width, negative: i32, log2: u32) -> Self::I {
        Self::splat(if width == Width::Wide && DOT != MIXED {
            0
        } else {
            negative << log2
        })
    }
    /// Without USDOT, codes are signed: narrow codes are below 128, and wide codes lose their offset.
    #[inline(always)]
    unsafe fn dot(width: Width, acc: Self::I, w: Self::I, x: Self::I) -> Self::I {
        if DOT == MIXED {
            return each!(|acc, w, x| usdot(acc, vreinterpretq_u8_s32(w), vreinterpretq_s8_s32(x)));
        }
        let w = if width == Width::Wide {
            Self::xor(w, Self::splat(0x8080_8080_u32.cast_signed()))
        } else {
            w
        };
        each!(|acc, w, x| {
            let (w, x) = (vreinterpretq_s8_s32(w), vreinterpretq_s8_s32(x));
            if DOT == SIGNED {
                sdot(acc, w, x)
            } else {
                widening_dot(acc, w, x)
            }
        })
    }
    #[inline(always)]
    unsafe fn link(pairs: Self::I, w: Self::I, x: Self::I) -> Self::I {
        each!(|pairs, w, x| {
            let (w, x) = (vreinterpretq_s8_s32(w), vreinterpretq_s8_s32(x));
            let products = vpaddq_s16(
                vmull_s8(vget_low_s8(w), vget_low_s8(x)),
                vmull_high_s8(w, x),
            );
            vreinterpretq_s32_s16(vaddq_s16(vreinterpretq_s16_s32(pairs), products))
        })
    }
    #[inline(always)]
    unsafe fn widen(acc: Self::I, pairs: Self::I) -> Self::I {
        each!(|acc, pairs| vpadalq_s16(acc, vreinterpretq_s16_s32(pairs)))
    }
    #[inline(always)]
    unsafe fn settled(a: Self::I) -> Self::I {
        a
    }
    #[inline(always)]
    unsafe fn to_f(a: Self::I) -> Self::F {
        each!(|a| vcvtq_f32_s32(a))
    }
    #[inline(always)]
    unsafe fn bits(a: Self::I) -> Self::F {
        each!(|a| vreinterpretq_f32_s32(a))
    }
    #[inline(always)]
    unsafe fn fsplat(v: f32) -> Self::F {
        [vdupq_n_f32(v); 4]
    }
    #[inline(always)]
    unsafe fn f32x16(p: *const u8) -> Self::F {
        let at = [p, p.add(16), p.add(32), p.add(48)];
        each!(|at| vreinterpretq_f32_u8(vld1q_u8(at)))
    }
    #[inline(always)]
    unsafe fn f16x16(p: *const u8) -> Self::F {
        let at = [p, p.add(8), p.add(16), p.add(24)];
        each!(|at| widen(vreinterpret_u16_u8(vld1_u8(at))))
    }
    #[inline(always)]
    unsafe fn bf16x16(p: *const u8) -> Self::F {
        let at = [p, p.add(8), p.add(16), p.add(24)];
        each!(|at| vreinterpretq_f32_u32(vshll_n_u16::<16>(vreinterpret_u16_u8(vld1_u8(at)))))
    }
    #[inline(always)]
    unsafe fn fstore(p: *mut f32, v: Self::F) {
        for (i, v) in v.into_iter().enumerate() {
            vst1q_u8(p.add(4 * i).cast(), vreinterpretq_u8_f32(v));
        }
    }
    #[inline(always)]
    unsafe fn fadd(a: Self::F, b: Self::F) -> Self::F {
        each!(|a, b| vaddq_f32(a, b))
    }
    #[inline(always)]
    unsafe fn fmul(a: Self::F, b: Self::F) -> Self::F {
        each!(|a, b| vmulq_f32(a, b))
    }
    #[inline(always)]
    unsafe fn fma(a: Self::F, b: Self::F, c: Self::F) -> Self::F {
        each!(|a, b, c| vfmaq_f32(c, a, b))
    }
}
