//! Multiplies panels of float weights by a few tokens. Activations stay f32.
//!
//! Elements `e` of a panel's 16 rows are adjacent. In a chunk of K, each pair of row and token has two sums
//! `f = fma(weight, activation, f)`: of even and of odd elements. They are added at the end. With one sum, the latency
//! of `fma` would limit the speed.
#![expect(unsafe_code, reason = "kernels")]
#![allow(
    clippy::needless_range_loop,
    reason = "counted loops over registers are unrolled"
)]
#![allow(
    unsafe_op_in_unsafe_fn,
    reason = "callers meet the contracts of all calls"
)]

use super::{SUMS, Sums, TOKENS};
use crate::product::layout::ROWS;
use crate::product::part::{BLOCK, Plan};
use crate::product::simd::{Kernel, Simd};
use std::marker::PhantomData;

pub(in crate::product) trait Element {
    const BYTES: usize;
    /// Reads element `e` of 16 rows.
    ///
    /// # Safety
    /// Same as [`Simd`]; `p` points to the elements.
    unsafe fn get<S: Simd>(p: *const u8) -> S::F;
}

pub(in crate::product) struct F32;
pub(in crate::product) struct F16;
pub(in crate::product) struct Bf16;

impl Element for F32 {
    const BYTES: usize = 4;
    #[inline(always)]
    unsafe fn get<S: Simd>(p: *const u8) -> S::F {
        S::f32x16(p)
    }
}
impl Element for F16 {
    const BYTES: usize = 2;
    #[inline(always)]
    unsafe fn get<S: Simd>(p: *const u8) -> S::F {
        S::f16x16(p)
    }
}
impl Element for Bf16 {
    const BYTES: usize = 2;
    #[inline(always)]
    unsafe fn get<S: Simd>(p: *const u8) -> S::F {
        S::bf16x16(p)
    }
}

pub(in crate::product) struct Floats<'a> {
    pub plan: &'a Plan,
    pub k: usize,
    /// The first panel; others follow.
    pub panel: *const u8,
    /// Bytes between panels.
    pub panel_bytes: usize,
    pub x: [*const f32; TOKENS],
    pub sums: &'a mut Sums,
}

struct Tile<'a, E, const V: usize, const W: usize>(Floats<'a>, PhantomData<E>);

impl<E: Element, const V: usize, const W: usize> Tile<'_, E, V, W> {
    #[inline(always)]
    unsafe fn add<S: Simd>(&self, f: &mut [[S::F; V]; W], e: usize) {
        let Floats {
            panel,
            panel_bytes,
            x,
            ..
        } = &self.0;
        let mut w = [S::fsplat(0.0); V];
        for v in 0..V {
            w[v] = E::get::<S>(panel.add(v * panel_bytes + e * ROWS * E::BYTES));
        }
        for t in 0..W {
            let x = S::fsplat(*x[t].add(e));
            for v in 0..V {
                f[t][v] = S::fma(w[v], x, f[t][v]);
            }
        }
    }
}

impl<E: Element, const V: usize, const W: usize> Kernel for Tile<'_, E, V, W> {
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let zero = [[S::fsplat(0.0); V]; W];
        let mut stack = [zero; SUMS];
        let mut depth = 0;
        for segment in self.0.plan.segments() {
            let (mut even, mut odd) = (zero, zero);
            let end = (segment.end * BLOCK).min(self.0.k);
            let mut e = segment.start * BLOCK;
            while e + 1 < end {
                self.add::<S>(&mut even, e);
                self.add::<S>(&mut odd, e + 1);
                e += 2;
            }
            if e < end {
                self.add::<S>(&mut even, e);
            }
            for t in 0..W {
                for v in 0..V {
                    even[t][v] = S::fadd(even[t][v], odd[t][v]);
                }
            }
            for _ in 0..segment.merges {
                depth -= 1;
                for t in 0..W {
                    for v in 0..V {
                        even[t][v] = S::fadd(even[t][v], stack[depth][t][v]);
                    }
                }
            }
            stack[depth] = even;
            depth += 1;
        }
        for (sums, f) in self.0.sums.iter_mut().zip(&stack[..depth]) {
            for t in 0..W {
                for v in 0..V {
                    S::fstore(sums[t][v].as_mut_ptr(), f[t][v]);
                }
            }
        }
    }
}

/// Runs [`Floats`] for `V` panels and `W` tokens.
///
/// # Safety
/// The machine has the instructions of `S`; the `V` panels and each of the first `W` rows have `k` elements.
pub(super) unsafe fn run<S: Simd, E: Element, const V: usize, const W: usize>(work: Floats) {
    // SAFETY: caller's contract.
    unsafe { S::enter(Tile::<E, V, W>(work, PhantomData)) }
}
