//! Attention on a tile of cells, in f32.
//!
//! Zeros pad rows to groups of [`LANES`] elements. The order of operations on an element does not depend on the
//! number of rows.
#![allow(unsafe_code)]
#![allow(
    unsafe_op_in_unsafe_fn,
    reason = "tasks guarantee that the loaded elements exist"
)]
#![expect(
    clippy::needless_range_loop,
    reason = "the loops index several arrays and must unroll"
)]

use std::marker::PhantomData;

use half::f16;

use crate::lanes::{Lanes, Task, run};
use crate::math::{LANES, exp, fold, tanh};
use crate::simd::vectorised;

pub(super) const TILE: usize = 64;

// A sequence occupies whole tiles of a cache.
const _: () = assert!(tpc_ir::CELL_BLOCK.is_multiple_of(TILE));

/// Scores (rows times cells) that registers hold.
const PRODUCTS: usize = 16;
pub(super) const GROUP: usize = PRODUCTS;

#[derive(Clone, Copy, Debug)]
pub(super) enum Cells<'a> {
    /// Decoded rows without gaps.
    Decoded(&'a [f32]),
    /// f16 rows in the cache: the address of cell 0, and the bytes between cells.
    F16(*const u8, usize),
}

trait Element: Copy {
    const BYTES: usize;

    /// Loads 16 elements.
    ///
    /// # Safety
    /// The elements exist, and the machine has the instructions of `S`.
    unsafe fn lanes<S: Lanes>(at: *const u8) -> S::F;
}

impl Element for f32 {
    const BYTES: usize = 4;

    #[inline(always)]
    unsafe fn lanes<S: Lanes>(at: *const u8) -> S::F {
        S::f32x16(at)
    }
}

impl Element for f16 {
    const BYTES: usize = 2;

    #[inline(always)]
    unsafe fn lanes<S: Lanes>(at: *const u8) -> S::F {
        S::f16x16(at)
    }
}

/// A matrix: address of the first element, elements per row, and bytes between rows.
#[derive(Clone, Copy)]
struct Rows<E> {
    ptr: *const u8,
    width: usize,
    stride: usize,
    element: PhantomData<E>,
}

impl<E: Element> Rows<E> {
    fn new(ptr: *const u8, width: usize, stride: usize) -> Rows<E> {
        Rows {
            ptr,
            width,
            stride,
            element: PhantomData,
        }
    }

    fn dense(ptr: *const E, width: usize) -> Rows<E> {
        Rows::new(ptr.cast(), width, width * E::BYTES)
    }

    /// Loads 16 elements of a row.
    ///
    /// # Safety
    /// The elements exist.
    #[inline(always)]
    unsafe fn lanes<S: Lanes>(self, row: usize, at: usize) -> S::F {
        E::lanes::<S>(self.ptr.add(row * self.stride + at * E::BYTES))
    }
}

/// The task of [`scores`] for `R` rows and whole groups of `16 / R` cells.
///
/// `q` has `R` rows, and `keys` has every cell of the range.
struct Scores<E, const R: usize> {
    q: Rows<f32>,
    keys: Rows<E>,
    cells: [usize; 2],
    logits: *mut f32,
}

impl<E: Element, const R: usize> Task for Scores<E, R> {
    #[inline(always)]
    unsafe fn run<S: Lanes>(self) {
        let across = PRODUCTS / R;
        let mut out = [0.0_f32; PRODUCTS];
        for c in (self.cells[0]..self.cells[1]).step_by(across) {
            let mut sums = [S::fsplat(0.0); PRODUCTS];
            for at in (0..self.q.width).step_by(LANES) {
                let mut q = [S::fsplat(0.0); R];
                for (r, q) in q.iter_mut().enumerate() {
                    *q = self.q.lanes::<S>(r, at);
                }
                for i in 0..PRODUCTS / R {
                    let k = self.keys.lanes::<S>(c + i, at);
                    for r in 0..R {
                        let sum = &mut sums[r * (PRODUCTS / R) + i];
                        *sum = S::fma(q[r], k, *sum);
                    }
                }
            }
            S::fstore(out.as_mut_ptr(), S::fold16(sums));
            for r in 0..R {
                let to = self.logits.add(r * TILE + c);
                std::ptr::copy_nonoverlapping(out.as_ptr().add(r * across), to, across);
            }
        }
    }
}

/// Computes `logits[r, c] = q[r] · keys[c]` for at least a range of cells. The tile's other logits are undefined.
/// Rows of `logits` are [`TILE`] apart.
///
/// # Safety
/// The cells of the range, extended to whole groups of [`GROUP`], exist; f16 cells have `width` elements.
pub(super) unsafe fn scores(
    q: &[f32],
    keys: Cells<'_>,
    width: usize,
    rows: usize,
    cells: [usize; 2],
    logits: &mut [f32],
) {
    assert!(q.len() >= rows * width && width.is_multiple_of(LANES));
    assert!(logits.len() >= rows * TILE && cells[1] <= TILE);
    match keys {
        Cells::Decoded(keys) => {
            assert!(keys.len() >= TILE * width);
            let keys = Rows::dense(keys.as_ptr(), width);
            all_scores(q, keys, rows, cells, logits);
        }
        Cells::F16(ptr, stride) => {
            let keys = Rows::<f16>::new(ptr, width, stride);
            all_scores(q, keys, rows, cells, logits);
        }
    }
}

/// # Safety
/// Same as [`scores`].
unsafe fn all_scores<E: Element>(
    q: &[f32],
    keys: Rows<E>,
    rows: usize,
    cells: [usize; 2],
    logits: &mut [f32],
) {
    let width = keys.width;
    let mut r = 0;
    while r < rows {
        let logits = logits.as_mut_ptr().wrapping_add(r * TILE);
        let q = Rows::dense(q.as_ptr().wrapping_add(r * width), width);
        r += match rows - r {
            4.. => scores_of::<E, 4>(q, keys, cells, logits),
            2.. => scores_of::<E, 2>(q, keys, cells, logits),
            _ => scores_of::<E, 1>(q, keys, cells, logits),
        };
    }
}

/// Computes the scores of `R` rows. Returns `R`.
///
/// # Safety
/// Same as [`Scores`], with the range extended to whole groups.
unsafe fn scores_of<E: Element, const R: usize>(
    q: Rows<f32>,
    keys: Rows<E>,
    [from, to]: [usize; 2],
    logits: *mut f32,
) -> usize {
    let across = PRODUCTS / R;
    run(Scores::<E, R> {
        q,
        keys,
        cells: [from / across * across, to.next_multiple_of(across)],
        logits,
    });
    R
}

/// The task of [`add_values`] for `R` rows.
///
/// Rows of `sums` and `values` have the same width. `values` has every cell of the range.
struct Values<E, const R: usize> {
    weights: *const f32,
    values: Rows<E>,
    cells: [usize; 2],
    sums: *mut f32,
}

impl<E: Element, const R: usize> Values<E, R> {
    /// Computes `N` groups of lanes, starting at element `at`.
    #[inline(always)]
    unsafe fn groups<S: Lanes, const N: usize>(&self, at: usize) {
        let place = |r: usize, n: usize| self.sums.add(r * self.values.width + at + n * LANES);
        let mut sums = [[S::fsplat(0.0); N]; R];
        for r in 0..R {
            for n in 0..N {
                sums[r][n] = S::f32x16(place(r, n).cast());
            }
        }
        for c in self.cells[0]..self.cells[1] {
            let mut v = [S::fsplat(0.0); N];
            for (n, v) in v.iter_mut().enumerate() {
                *v = self.values.lanes::<S>(c, at + n * LANES);
            }
            for r in 0..R {
                let w = S::fsplat(*self.weights.add(r * TILE + c));
                for n in 0..N {
                    sums[r][n] = S::fma(w, v[n], sums[r][n]);
                }
            }
        }
        for r in 0..R {
            for n in 0..N {
                S::fstore(place(r, n), sums[r][n]);
            }
        }
    }
}

impl<E: Element, const R: usize> Task for Values<E, R> {
    #[inline(always)]
    unsafe fn run<S: Lanes>(self) {
        let mut at = 0;
        while at + 4 * LANES <= self.values.width {
            self.groups::<S, 4>(at);
            at += 4 * LANES;
        }
        while at < self.values.width {
            self.groups::<S, 1>(at);
            at += LANES;
        }
    }
}

/// Computes `sums[r] += Σ weights[r, c] · values[c]` for a range of cells, in cell order. Rows of `weights` are
/// [`TILE`] apart.
///
/// # Safety
/// The cells of the range exist; f16 cells have `width` elements.
pub(super) unsafe fn add_values(
    weights: &[f32],
    values: Cells<'_>,
    width: usize,
    rows: usize,
    cells: [usize; 2],
    sums: &mut [f32],
) {
    assert!(weights.len() >= rows * TILE && cells[1] <= TILE);
    assert!(sums.len() >= rows * width && width.is_multiple_of(LANES));
    match values {
        Cells::Decoded(values) => {
            assert!(values.len() >= TILE * width);
            let values = Rows::dense(values.as_ptr(), width);
            add_all_values(weights, values, rows, cells, sums);
        }
        Cells::F16(ptr, stride) => {
            let values = Rows::<f16>::new(ptr, width, stride);
            add_all_values(weights, values, rows, cells, sums);
        }
    }
}

/// # Safety
/// Same as [`add_values`].
unsafe fn add_all_values<E: Element>(
    weights: &[f32],
    values: Rows<E>,
    rows: usize,
    cells: [usize; 2],
    sums: &mut [f32],
) {
    let mut r = 0;
    while r < rows {
        let weights = weights.as_ptr().wrapping_add(r * TILE);
        let sums = sums.as_mut_ptr().wrapping_add(r * values.width);
        r += match rows - r {
            4.. => values_of::<E, 4>(weights, values, cells, sums),
            2.. => values_of::<E, 2>(weights, values, cells, sums),
            _ => values_of::<E, 1>(weights, values, cells, sums),
        };
    }
}

/// Computes the sums of `R` rows. Returns `R`.
///
/// # Safety
/// Same as [`Values`].
unsafe fn values_of<E: Element, const R: usize>(
    weights: *const f32,
    values: Rows<E>,
    cells: [usize; 2],
    sums: *mut f32,
) -> usize {
    run(Values::<E, R> {
        weights,
        values,
        cells,
        sums,
    });
    R
}

vectorised! {
    pub(super) fn scale(x: &mut [f32], scale: f32) {
        for x in x {
            *x *= scale;
        }
    }
}

vectorised! {
    pub(super) fn cap(x: &mut [f32; TILE], scale: f32, bound: f32) {
        for x in x {
            *x = bound * tanh(*x * scale);
        }
    }
}

vectorised! {
    /// Computes `x ← scale · x + slope · mask`, or −∞ for cells with mask −∞. Returns the largest result.
    pub(super) fn mask_logits(x: &mut [f32; TILE], scale: f32, mask: &[f32; TILE], slope: f32) -> f32 {
        let mut most = [f32::NEG_INFINITY; LANES];
        for (x, mask) in x.as_chunks_mut::<LANES>().0.iter_mut().zip(mask.as_chunks::<LANES>().0) {
            for l in 0..LANES {
                let y = slope.mul_add(mask[l], x[l] * scale);
                let y = if mask[l] == f32::NEG_INFINITY { f32::NEG_INFINITY } else { y };
                x[l] = y;
                most[l] = if y > most[l] { y } else { most[l] };
            }
        }
        most.into_iter().fold(f32::NEG_INFINITY, |a, b| if b > a { b } else { a })
    }
}

vectorised! {
    /// Computes `x ← e^(x − most)`. Returns the sum per lane.
    pub(super) fn exponentials(x: &mut [f32; TILE], most: f32) -> f32 {
        let mut sums = [0.0_f32; LANES];
        for x in x.as_chunks_mut::<LANES>().0 {
            for l in 0..LANES {
                x[l] = exp(x[l] - most);
                sums[l] += x[l];
            }
        }
        fold(sums)
    }
}
