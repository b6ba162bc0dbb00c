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

use super::PANELS;
use super::block::{Kind, Source, add};
use super::unpack::Unpacked;
use crate::product::activations::Block;
use crate::product::layout::ROWS;
use crate::product::layout::codes::offset;
use crate::product::simd::{Kernel, Simd, Width};
use std::marker::PhantomData;

pub(in crate::product) type Sum = [[f32; ROWS]; PANELS];

/// Decoded blocks of one segment.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::product) struct Run {
    pub blocks: usize,
    /// The slot of the sums.
    pub slot: usize,
    /// True at the start of a segment, where sums begin with zero.
    pub first: bool,
    /// Number of earlier slots to add at the end, last first. The result replaces the slot added last.
    pub merges: usize,
}

/// Decoded panels times rows of activations, added to sums.
pub(in crate::product) struct Multiply<'a> {
    pub panels: &'a [Unpacked; PANELS],
    pub runs: &'a [Run],
    /// The rows of activations of these tokens, then of the next ones.
    pub x: &'a [*const Block],
    /// The first decoded block.
    pub start: usize,
    /// The first token's sums in slot 0. Each next slot starts `stride` sums later.
    pub sums: *mut Sum,
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
        let at = |slot: usize, t: usize, v: usize| {
            let sum = work.sums.add(slot * work.stride + t);
            sum.cast::<f32>().add(ROWS * v)
        };
        let mut panels: [Read<K>; V] = std::array::from_fn(|v| Read::first(&work.panels[v]));
        let x: [*const Block; W] = std::array::from_fn(|t| work.x[t]);
        let next: [*const Block; W] = std::array::from_fn(|t| work.x[W + t]);
        let mut b = work.start;
        for run in work.runs {
            let mut f = [[S::fsplat(0.0); V]; W];
            if !run.first {
                for t in 0..W {
                    for v in 0..V {
                        f[t][v] = S::f32x16(at(run.slot, t, v).cast());
                    }
                }
            }
            for _ in 0..run.blocks {
                let mut rows = [&*x[0].add(b); W];
                for t in 1..W {
                    rows[t] = &*x[t].add(b);
                }
                if S::CHAINS {
                    for t in 0..W {
                        S::prefetch_near(next[t].wrapping_add(b).cast());
                    }
                }
                add::<S, K, _, V, W>(&mut f, &panels, rows);
                for panel in &mut panels {
                    panel.advance();
                }
                b += 1;
            }
            for t in 0..W {
                for v in 0..V {
                    for slot in (run.slot - run.merges..run.slot).rev() {
                        f[t][v] = S::fadd(f[t][v], S::f32x16(at(slot, t, v).cast()));
                    }
                    S::fstore(at(run.slot - run.merges, t, v), f[t][v]);
                }
            }
        }
    }
}

/// The kind with these properties. `LOG2` is log2 of the offset, or -1 without offset. Codes with an offset of 128 are
/// wide.
pub(super) struct Of<const SUB: usize, const MIN: bool, const LOG2: i32, const LINKS: usize>;

impl<const SUB: usize, const MIN: bool, const LOG2: i32, const LINKS: usize> Kind
    for Of<SUB, MIN, LOG2, LINKS>
{
    const SUB: usize = SUB;
    const MIN: bool = MIN;
    const OFFSET: Option<u32> = offset(LOG2);
    const WIDTH: Width = if LOG2 == 7 {
        Width::Wide
    } else {
        Width::Narrow
    };
    const LINKS: usize = LINKS;
}

/// Runs [`Multiply`] for `V` panels and `W` tokens.
///
/// # Safety
/// The machine has the instructions of `S`; there are `2·W` rows, and each of the first `W` has the blocks of all runs; the sums of all
/// slots have `W` tokens, and no run merges more slots than there are before its own.
pub(super) unsafe fn run<S: Simd, K: Kind, const V: usize, const W: usize>(work: Multiply) {
    // SAFETY: caller's contract.
    unsafe { S::enter(Tile::<K, V, W>(work, PhantomData)) }
}
