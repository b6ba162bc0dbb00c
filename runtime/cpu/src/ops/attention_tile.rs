//! The arithmetic of attention on a tile of cells, in f32.
//!
//! Rows in memory are whole groups of [`LANES`] elements, padded with zeros. Every element of a result has one sequence
//! of operations, whatever the number of rows that are computed side by side.
#![allow(unsafe_code)]
#![allow(
    unsafe_op_in_unsafe_fn,
    reason = "lanes are loaded where the tasks say that there are elements"
)]
#![expect(
    clippy::needless_range_loop,
    reason = "rows and groups of lanes index several arrays, whose loops must unroll"
)]

use crate::lanes::{Lanes, Task, run};
use crate::math::{LANES, exp, fold, tanh};
use crate::simd::vectorised;

/// Cells of a tile.
pub(super) const TILE: usize = 64;

/// Products of a register tile: rows times cells.
const PRODUCTS: usize = 16;

/// A matrix in memory: elements of a row, and elements from row to row.
#[derive(Clone, Copy)]
struct Rows {
    ptr: *const f32,
    width: usize,
}

impl Rows {
    /// 16 elements of a row.
    ///
    /// # Safety
    /// They exist.
    #[inline(always)]
    unsafe fn lanes<S: Lanes>(self, row: usize, at: usize) -> S::F {
        S::f32x16(self.ptr.add(row * self.width + at).cast())
    }
}

/// `logits[r, c] = q[r] · keys[c]` of `R` rows and the cells in a range, which is whole groups of `16 / R`.
///
/// `q` has `R` rows and `keys` every cell of the range; rows of `logits` are [`TILE`] apart.
struct Scores<const R: usize> {
    q: Rows,
    keys: Rows,
    cells: [usize; 2],
    logits: *mut f32,
}

impl<const R: usize> Task for Scores<R> {
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

/// `logits[r, c] = q[r] · keys[c]` of at least the cells in a range; other logits of the tile are not defined. Rows of
/// `logits` are [`TILE`] apart.
pub(super) fn scores(
    q: &[f32],
    keys: &[f32],
    width: usize,
    rows: usize,
    cells: [usize; 2],
    logits: &mut [f32],
) {
    assert!(q.len() >= rows * width && keys.len() >= TILE * width);
    assert!(logits.len() >= rows * TILE && cells[1] <= TILE && width.is_multiple_of(LANES));
    let keys = Rows {
        ptr: keys.as_ptr(),
        width,
    };
    let mut r = 0;
    while r < rows {
        let ptr = q.as_ptr().wrapping_add(r * width);
        let logits = logits.as_mut_ptr().wrapping_add(r * TILE);
        let q = Rows { ptr, width };
        // SAFETY: there are as many rows, and every group of cells lies within the tile.
        r += unsafe {
            match rows - r {
                4.. => scores_of::<4>(q, keys, cells, logits),
                2.. => scores_of::<2>(q, keys, cells, logits),
                _ => scores_of::<1>(q, keys, cells, logits),
            }
        };
    }
}

/// Scores of `R` rows; returns `R`.
///
/// # Safety
/// As [`Scores`], with the range widened to whole groups.
unsafe fn scores_of<const R: usize>(
    q: Rows,
    keys: Rows,
    [from, to]: [usize; 2],
    logits: *mut f32,
) -> usize {
    let across = PRODUCTS / R;
    run(Scores::<R> {
        q,
        keys,
        cells: [from / across * across, to.next_multiple_of(across)],
        logits,
    });
    R
}

/// `sums[r] += Σ weights[r, c] · values[c]` of `R` rows and the cells in a range, in their order.
///
/// Rows of `weights` are [`TILE`] apart; those of `sums` are as wide as those of `values`, which has every cell of the
/// range.
struct Values<const R: usize> {
    weights: *const f32,
    values: Rows,
    cells: [usize; 2],
    sums: *mut f32,
}

impl<const R: usize> Values<R> {
    /// `N` groups of lanes, from element `at` on.
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

impl<const R: usize> Task for Values<R> {
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

/// `sums[r] += Σ weights[r, c] · values[c]` of the cells in a range, in their order. Rows of `weights` are [`TILE`] apart.
pub(super) fn add_values(
    weights: &[f32],
    values: &[f32],
    width: usize,
    rows: usize,
    cells: [usize; 2],
    sums: &mut [f32],
) {
    assert!(weights.len() >= rows * TILE && values.len() >= TILE * width);
    assert!(sums.len() >= rows * width && cells[1] <= TILE && width.is_multiple_of(LANES));
    let values = Rows {
        ptr: values.as_ptr(),
        width,
    };
    let mut r = 0;
    while r < rows {
        let weights = weights.as_ptr().wrapping_add(r * TILE);
        let sums = sums.as_mut_ptr().wrapping_add(r * width);
        // SAFETY: there are as many rows, and the cells lie within the tile.
        r += unsafe {
            match rows - r {
                4.. => values_of::<4>(weights, values, cells, sums),
                2.. => values_of::<2>(weights, values, cells, sums),
                _ => values_of::<1>(weights, values, cells, sums),
            }
        };
    }
}

/// Sums of `R` rows; returns `R`.
///
/// # Safety
/// As [`Values`].
unsafe fn values_of<const R: usize>(
    weights: *const f32,
    values: Rows,
    cells: [usize; 2],
    sums: *mut f32,
) -> usize {
    run(Values::<R> {
        weights,
        values,
        cells,
        sums,
    });
    R
}

vectorised! {
    /// `x ← scale · x`
    pub(super) fn scale(x: &mut [f32], scale: f32) {
        for x in x {
            *x *= scale;
        }
    }
}

vectorised! {
    /// `x ← bound · tanh(x · scale)`
    pub(super) fn cap(x: &mut [f32; TILE], scale: f32, bound: f32) {
        for x in x {
            *x = bound * tanh(*x * scale);
        }
    }
}

vectorised! {
    /// `x ← scale · x + slope · mask`, −∞ where the mask is, whatever `x` is; returns the largest, or −∞.
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
    /// `x ← e^(x − most)`; returns their sum, in lanes.
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
