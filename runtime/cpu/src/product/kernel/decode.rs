//! Multiplies a panel by a few tokens, decoding in registers, for weights that come from memory and are used once.
#![expect(unsafe_code, reason = "kernels")]
#![allow(
    clippy::needless_range_loop,
    reason = "counted loops over registers are unrolled"
)]
#![allow(
    unsafe_op_in_unsafe_fn,
    reason = "callers meet the contracts of all calls"
)]

use super::block::{Decoded, add};
use super::{SUMS, Sums, TOKENS};
use crate::product::activations::Block;
use crate::product::layout::codes::AHEAD;
use crate::product::layout::geometry::Geometry;
use crate::product::layout::{Codes, Layout, Scales};
use crate::product::part::Plan;
use crate::product::simd::{Kernel, Simd};
use std::marker::PhantomData;

pub(in crate::product) struct Decode<'a> {
    pub geometry: &'a Geometry,
    pub plan: &'a Plan,
    pub panel: *const u8,
    pub x: [*const Block; TOKENS],
    pub sums: &'a mut Sums,
}

struct Tile<'a, L, const W: usize>(Decode<'a>, PhantomData<L>);

impl<L: Layout, const W: usize> Kernel for Tile<'_, L, W> {
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let Decode {
            geometry,
            plan,
            panel,
            x,
            sums,
        } = self.0;
        let mut stack = [[[S::fsplat(0.0)]; W]; SUMS];
        let mut depth = 0;
        // Prefetches the trailing scales of the next panel, needed by its first step.
        for line in (geometry.steps_bytes()..geometry.panel).step_by(64) {
            S::prefetch(panel.wrapping_add(geometry.panel + line));
        }
        for segment in plan.segments() {
            let mut f = [[S::fsplat(0.0)]; W];
            let mut at = segment.start;
            while at < segment.end {
                let step = geometry.step(at, segment.end);
                let head = L::Scales::head::<S>(panel.add(step.head.start), panel.add(step.behind));
                let mut body = panel.add(step.body);
                for line in step.head.step_by(64) {
                    S::prefetch(panel.wrapping_add(line + AHEAD));
                }
                for b in step.blocks {
                    let w = [Decoded::<S, L>::new(&head, b, body)];
                    let mut rows = [&*x[0].add(at); W];
                    for t in 1..W {
                        rows[t] = &*x[t].add(at);
                    }
                    add::<S, L, _, 1, W>(&mut f, &w, rows);
                    body = body.add(L::Codes::BYTES);
                    at += 1;
                }
            }
            for _ in 0..segment.merges {
                depth -= 1;
                for t in 0..W {
                    f[t][0] = S::fadd(f[t][0], stack[depth][t][0]);
                }
            }
            stack[depth] = f;
            depth += 1;
        }
        for (sums, f) in sums.iter_mut().zip(&stack[..depth]) {
            for t in 0..W {
                S::fstore(sums[t][0].as_mut_ptr(), f[t][0]);
            }
        }
    }
}

/// Runs [`Decode`] for `W` tokens.
///
/// # Safety
/// The machine has the instructions of `S`; the panel has the geometry of `L`; each of the first `W` rows has all
/// blocks of the geometry.
pub(super) unsafe fn run<S: Simd, L: Layout, const W: usize>(work: Decode) {
    // SAFETY: caller's contract.
    unsafe { S::enter(Tile::<L, W>(work, PhantomData)) }
}
