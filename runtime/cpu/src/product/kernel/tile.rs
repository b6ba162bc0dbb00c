//! Multiplies decoded blocks of one or two panels by a few tokens.
//!
//! Two panels times six tokens need 8 loads for 12 dot instructions; one panel times twelve tokens needs 13 loads.
#![expect(unsafe_code, reason = "kernels")]
#![allow(
    clippy::needless_range_loop,
    reason = "counted loops over registers are unrolled"
)]
#![allow(
    unsafe_op_in_unsafe_fn,
    reason = "callers meet the contracts of all calls"
)]

use super::block::{Kind, Source, add};
use super::unpack::Unpacked;
use super::{PANELS, TOKENS};
use crate::product::activations::Block;
use crate::product::layout::ROWS;
use crate::product::layout::codes::offset;
use crate::product::simd::{Kernel, Simd, Width};
use std::marker::PhantomData;

pub(in crate::product) type Sum = [[f32; ROWS]; PANELS];

/// Decoded panels times rows of activations, added to sums.
pub(in crate::product) struct Multiply<'a> {
    pub panels: &'a [Unpacked; PANELS],
    pub blocks: usize,
    /// The activations of the first decoded block, per token.
    pub x: [*const Block; TOKENS],
    pub sums: *mut Sum,
    /// True at the start of a segment, where sums begin with zero.
    pub first: bool,
    /// Number of earlier sums to add at the end, last first. Each is stored `stride` sums before the next. The result
    /// replaces the sum added last.
    pub merges: usize,
    pub stride: usize,
}

struct Tile<'a, K, const V: usize, const W: usize>(Multiply<'a>, PhantomData<K>);

struct Read<K> {
    units: *const u8,
    scales: *const u8,
    mins: *const u8,
    kind: PhantomData<K>,
}

impl<K: Kind> Read<K> {
    fn first(panel: &Unpacked) -> Read<K> {
        Read {
            units: panel.codes.as_ptr().cast(),
            scales: panel.scales.as_ptr().cast(),
            mins: panel.mins.as_ptr().cast(),
            kind: PhantomData,
        }
    }
    #[inline(always)]
    fn advance(&mut self) {
        let parts = 32 / K::SUB;
        self.units = self.units.wrapping_add(64 * 8);
        self.scales = self.scales.wrapping_add(64 * parts);
        self.mins = self.mins.wrapping_add(64 * parts);
    }
}

impl<S: Simd, K: Kind> Source<S> for Read<K> {
    #[inline(always)]
    unsafe fn unit(&self, u: usize) -> S::I {
        S::load(self.units.add(64 * u))
    }
    #[inline(always)]
    unsafe fn scale(&self, j: usize) -> S::F {
        S::f32x16(self.scales.add(64 * j))
    }
    #[inline(always)]
    unsafe fn min(&self, j: usize) -> S::F {
        S::f32x16(self.mins.add(64 * j))
    }
}

impl<K: Kind, const V: usize, const W: usize> Kernel for Tile<'_, K, V, W> {
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let work = self.0;
        let mut f = [[S::fsplat(0.0); V]; W];
        let at = |t: usize, v: usize| work.sums.add(t).cast::<f32>().add(ROWS * v);
        if !work.first {
            for t in 0..W {
                for v in 0..V {
                    f[t][v] = S::f32x16(at(t, v).cast());
                }
            }
        }
        let mut panels: [Read<K>; V] = std::array::from_fn(|v| Read::first(&work.panels[v]));
        for b in 0..work.blocks {
            let mut rows = [&*work.x[0].add(b); W];
            for t in 1..W {
                rows[t] = &*work.x[t].add(b);
            }
            add::<S, K, _, V, W>(&mut f, &panels, rows);
            for panel in &mut panels {
                panel.advance();
            }
        }
        for t in 0..W {
            for v in 0..V {
                let mut to = at(t, v);
                for _ in 0..work.merges {
                    to = to.sub(work.stride * PANELS * ROWS);
                    f[t][v] = S::fadd(f[t][v], S::f32x16(to.cast()));
                }
                S::fstore(to, f[t][v]);
            }
        }
    }
}

/// The kind with these properties. `LOG2` is log2 of the offset, or -1 without offset.
pub(super) struct Of<const SUB: usize, const MIN: bool, const LOG2: i32, const WIDE: bool>;

impl<const SUB: usize, const MIN: bool, const LOG2: i32, const WIDE: bool> Kind
    for Of<SUB, MIN, LOG2, WIDE>
{
    const SUB: usize = SUB;
    const MIN: bool = MIN;
    const OFFSET: Option<u32> = offset(LOG2);
    const WIDTH: Width = if WIDE { Width::Wide } else { Width::Narrow };
}

/// Runs [`Multiply`] for `V` panels and `W` tokens.
///
/// # Safety
/// The machine has the instructions of `S`; each of the first `W` rows has the blocks; `sums` and the earlier sums
/// have `W` tokens.
pub(super) unsafe fn run<S: Simd, K: Kind, const V: usize, const W: usize>(work: Multiply) {
    // SAFETY: caller's contract.
    unsafe { S::enter(Tile::<K, V, W>(work, PhantomData)) }
}
