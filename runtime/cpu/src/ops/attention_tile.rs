//! The arithmetic of attention on a tile of cells, in f32.
//!
//! Rows in memory are whole groups of [`LANES`] elements, padded with zeros. Every element of a result has one sequence
//! of operations, whatever the number of rows that are computed side by side.

use crate::math::{LANES, exp, fold, sum, tanh};
use crate::simd::vectorised;

/// Cells of a tile.
pub(super) const TILE: usize = 64;

type Lanes = [f32; LANES];

vectorised! {
    /// `logits[r, c] = q[r] · keys[c]` of `R` rows and the cells in a range: sums in lanes, folded as a tree.
    fn scores_of<const R: usize>(
        q: &[f32],
        keys: &[f32],
        width: usize,
        cells: [usize; 2],
        logits: &mut [f32],
    ) {
        let groups = width / LANES;
        let q: [&[Lanes]; R] = std::array::from_fn(|r| {
            &q[r * width..][..width].as_chunks::<LANES>().0[..groups]
        });
        let mut c = cells[0];
        while c + 4 <= cells[1] {
            let k: [&[Lanes]; 4] = std::array::from_fn(|i| {
                &keys[(c + i) * width..][..width].as_chunks::<LANES>().0[..groups]
            });
            let mut sums = [[[0.0_f32; LANES]; 4]; R];
            for g in 0..groups {
                for r in 0..R {
                    for i in 0..4 {
                        for l in 0..LANES {
                            sums[r][i][l] = q[r][g][l].mul_add(k[i][g][l], sums[r][i][l]);
                        }
                    }
                }
            }
            for r in 0..R {
                for i in 0..4 {
                    logits[r * TILE + c + i] = fold(sums[r][i]);
                }
            }
            c += 4;
        }
        while c < cells[1] {
            let k = &keys[c * width..][..width].as_chunks::<LANES>().0[..groups];
            for r in 0..R {
                let mut sums = [0.0_f32; LANES];
                for g in 0..groups {
                    for l in 0..LANES {
                        sums[l] = q[r][g][l].mul_add(k[g][l], sums[l]);
                    }
                }
                logits[r * TILE + c] = fold(sums);
            }
            c += 1;
        }
    }
}

/// `logits[r, c] = q[r] · keys[c]` of the cells in a range. Rows of `logits` are [`TILE`] apart.
pub(super) fn scores(
    q: &[f32],
    keys: &[f32],
    width: usize,
    rows: usize,
    cells: [usize; 2],
    logits: &mut [f32],
) {
    let mut r = 0;
    while r < rows {
        let (q, logits) = (&q[r * width..], &mut logits[r * TILE..]);
        r += match rows - r {
            4.. => {
                scores_of::<4>(q, keys, width, cells, logits);
                4
            }
            2.. => {
                scores_of::<2>(q, keys, width, cells, logits);
                2
            }
            _ => {
                scores_of::<1>(q, keys, width, cells, logits);
                1
            }
        };
    }
}

vectorised! {
    /// `sums[r] += Σ weights[r, c] · values[c]` of `R` rows and the cells in a range, in their order; two groups of lanes at
    /// a time.
    fn add_values_of<const R: usize>(
        weights: &[f32],
        values: &[f32],
        width: usize,
        cells: [usize; 2],
        sums: &mut [f32],
    ) {
        let mut at = 0;
        while at + 2 * LANES <= width {
            let mut acc = [[[0.0_f32; LANES]; 2]; R];
            for r in 0..R {
                for h in 0..2 {
                    acc[r][h].copy_from_slice(&sums[r * width + at + h * LANES..][..LANES]);
                }
            }
            for c in cells[0]..cells[1] {
                let v: &[Lanes] = values[c * width + at..][..2 * LANES].as_chunks().0;
                for r in 0..R {
                    let w = weights[r * TILE + c];
                    for h in 0..2 {
                        for l in 0..LANES {
                            acc[r][h][l] = w.mul_add(v[h][l], acc[r][h][l]);
                        }
                    }
                }
            }
            for r in 0..R {
                for h in 0..2 {
                    sums[r * width + at + h * LANES..][..LANES].copy_from_slice(&acc[r][h]);
                }
            }
            at += 2 * LANES;
        }
        while at < width {
            for r in 0..R {
                let mut acc = [0.0_f32; LANES];
                acc.copy_from_slice(&sums[r * width + at..][..LANES]);
                for c in cells[0]..cells[1] {
                    let v: &[Lanes] = values[c * width + at..][..LANES].as_chunks().0;
                    let w = weights[r * TILE + c];
                    for l in 0..LANES {
                        acc[l] = w.mul_add(v[0][l], acc[l]);
                    }
                }
                sums[r * width + at..][..LANES].copy_from_slice(&acc);
            }
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
    let mut r = 0;
    while r < rows {
        let (weights, sums) = (&weights[r * TILE..], &mut sums[r * width..]);
        r += match rows - r {
            4.. => {
                add_values_of::<4>(weights, values, width, cells, sums);
                4
            }
            2.. => {
                add_values_of::<2>(weights, values, width, cells, sums);
                2
            }
            _ => {
                add_values_of::<1>(weights, values, width, cells, sums);
                1
            }
        };
    }
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
    pub(super) fn cap(x: &mut [f32], scale: f32, bound: f32) {
        for x in x {
            *x = bound * tanh(*x * scale);
        }
    }
}

vectorised! {
    /// `x ← x + slope · mask`, −∞ where the mask is, whatever `x` is; returns the largest, or −∞.
    pub(super) fn mask_logits(x: &mut [f32], mask: &[f32], slope: f32) -> f32 {
        for (x, m) in x.iter_mut().zip(mask) {
            *x = if *m == f32::NEG_INFINITY {
                f32::NEG_INFINITY
            } else {
                slope.mul_add(*m, *x)
            };
        }
        crate::math::max(x)
    }
}

vectorised! {
    /// `x ← e^(x − most)`; returns their sum.
    pub(super) fn exponentials(x: &mut [f32], most: f32) -> f64 {
        for x in x.iter_mut() {
            *x = exp(*x - most);
        }
        sum(x)
    }
}
