//! Decodes blocks of a panel into a cache, for batches that reuse them.
#![expect(unsafe_code, reason = "kernels")]
#![allow(
    clippy::needless_range_loop,
    reason = "counted loops over registers are unrolled"
)]
#![allow(
    unsafe_op_in_unsafe_fn,
    reason = "callers meet the contracts of all calls"
)]

use super::block::{Decoded, Source};
use crate::product::layout::geometry::Geometry;
use crate::product::layout::{Codes, Layout, ROWS, Scales};
use crate::product::simd::{Kernel, Simd};
use std::marker::PhantomData;
use std::ops::Range;

/// Maximum number of blocks decoded together. They fit a first-level cache with six tokens' activations.
pub(in crate::product) const BLOCKS: usize = 16;

#[derive(Clone)]
#[repr(C, align(64))]
pub(in crate::product) struct Unpacked {
    pub codes: [[u8; 64]; 8 * BLOCKS],
    /// Scales, one or two per block.
    pub scales: [[f32; ROWS]; 2 * BLOCKS],
    /// Minima, one or two per block.
    pub mins: [[f32; ROWS]; 2 * BLOCKS],
}

impl Unpacked {
    pub(in crate::product) const ZERO: Unpacked = Unpacked {
        codes: [[0; 64]; 8 * BLOCKS],
        scales: [[0.0; ROWS]; 2 * BLOCKS],
        mins: [[0.0; ROWS]; 2 * BLOCKS],
    };
}

pub(in crate::product) struct Unpack<'a> {
    pub geometry: &'a Geometry,
    pub panel: *const u8,
    pub blocks: Range<usize>,
    pub out: &'a mut Unpacked,
}

struct Of<'a, L>(Unpack<'a>, PhantomData<L>);

impl<L: Layout> Kernel for Of<'_, L> {
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let Unpack {
            geometry,
            panel,
            blocks,
            out,
        } = self.0;
        let parts = 32 / L::Scales::SUB;
        let mut codes = out.codes.as_mut_ptr().cast::<u8>();
        let mut scales = out.scales.as_mut_ptr().cast::<f32>();
        let mut mins = out.mins.as_mut_ptr().cast::<f32>();
        let mut at = blocks.start;
        while at < blocks.end {
            let step = geometry.step(at, blocks.end);
            let head = L::Scales::head::<S>(panel.add(step.head.start), panel.add(step.behind));
            let mut body = panel.add(step.body);
            for b in step.blocks {
                let w = Decoded::<S, L>::new(&head, b, body);
                for u in 0..8 {
                    S::store(codes, w.unit(u));
                    codes = codes.add(64);
                }
                for j in 0..parts {
                    S::fstore(scales.add(ROWS * j), w.scale(j));
                    if L::Scales::MIN {
                        S::fstore(mins.add(ROWS * j), w.min(j));
                    }
                }
                scales = scales.add(ROWS * parts);
                mins = mins.add(ROWS * parts);
                body = body.add(L::Codes::BYTES);
                at += 1;
            }
        }
    }
}

/// Runs [`Unpack`].
///
/// # Safety
/// The machine has the instructions of `S`; the panel has the geometry of `L`, and contains the blocks; there are at
/// most [`BLOCKS`] blocks.
pub(super) unsafe fn run<S: Simd, L: Layout>(work: Unpack) {
    // SAFETY: caller's contract.
    unsafe { S::enter(Of::<L>(work, PhantomData)) }
}
