//! ggml's encoders of the K formats and of iq4_xs: each group gets the scale (and minimum) of least weighted error
//! among several.

use half::f16;

use super::bits::{inverse, put_f16};
use super::k::LEN;
use super::k_encode::{Affine, Symmetric, pack_q2_k, pack_q3_k, pack_q4_k, pack_q5_k, pack_q6_k};

pub(super) const ZERO_GROUP: f32 = 1e-15;

fn nearest(x: f32) -> i32 {
    x.round_ties_even() as i32
}

struct Search {
    top: i32,
    /// First change of `top` to try and number of further changes, 0.1 apart.
    first: f32,
    steps: usize,
    /// True if the error weights magnitudes instead of squares.
    absolute: bool,
    /// The largest multiple for scales and minima.
    scale_top: i32,
    weights: fn(&[f32], &mut [f32]),
}

/// Computes weights that grow with the magnitude, starting at the group's magnitude.
fn spread(x: &[f32], out: &mut [f32]) {
    let squares = x.iter().fold(0.0, |sum, x| sum + x * x);
    let mean = (squares / x.len() as f32).sqrt();
    out.iter_mut().zip(x).for_each(|(w, x)| *w = mean + x.abs());
}

fn magnitudes(x: &[f32], out: &mut [f32]) {
    out.iter_mut().zip(x).for_each(|(w, x)| *w = x.abs());
}

const Q2K: Search = Search {
    top: 3,
    first: -0.5,
    steps: 15,
    absolute: true,
    scale_top: 15,
    weights: magnitudes,
};
const Q4K: Search = Search {
    top: 15,
    first: -1.0,
    steps: 20,
    absolute: false,
    scale_top: 63,
    weights: spread,
};
const Q5K: Search = Search {
    top: 31,
    first: -0.5,
    steps: 15,
    absolute: false,
    scale_top: 63,
    weights: spread,
};

pub(super) fn encode_q2_k(x: &[f32; LEN]) -> [u8; 84] {
    pack_q2_k(&Q2K.affine::<16>(x))
}

pub(super) fn encode_q4_k(x: &[f32; LEN]) -> [u8; 144] {
    pack_q4_k(&Q4K.affine::<8>(x))
}

pub(super) fn encode_q5_k(x: &[f32; LEN]) -> [u8; 176] {
    pack_q5_k(&Q5K.affine::<8>(x))
}

impl Search {
    fn code(&self, x: f32) -> f32 {
        nearest(x).clamp(0, self.top) as f32
    }

    /// Returns a group's scale and negated minimum; writes its codes.
    fn fit(&self, x: &[f32], w: &[f32], codes: &mut [u8]) -> (f32, f32) {
        let mut min = x.iter().copied().fold(x[0], f32::min);
        let max = x.iter().copied().fold(x[0], f32::max);
        let mut sums = (0.0_f32, 0.0_f32);
        for (w, x) in w.iter().zip(x) {
            sums = (sums.0 + w, sums.1 + w * x);
        }
        let (sum_w, sum_x) = sums;
        min = min.min(0.0);
        codes.fill(0);
        if max == min {
            return (0.0, -min);
        }
        let error = |scale: f32, min: f32, codes: &[f32]| {
            let all = x.iter().zip(w).zip(codes);
            all.fold(0.0_f32, |sum, ((x, w), l)| {
                let off = scale * l + min - x;
                sum + w * if self.absolute { off.abs() } else { off * off }
            })
        };
        let top = self.top as f32;
        let coded = |inverse: f32, low: f32| -> Vec<f32> {
            x.iter().map(|x| self.code(inverse * (x - low))).collect()
        };
        let mut best = coded(top / (max - min), min);
        let mut scale = 1.0 / (top / (max - min));
        let mut least = error(scale, min, &best);
        for step in 0..=self.steps {
            let inverse = (self.first + 0.1 * step as f32 + top) / (max - min);
            let tried = coded(inverse, min);
            let (mut l1, mut l2, mut xl) = (0.0_f32, 0.0_f32, 0.0_f32);
            for ((x, w), l) in x.iter().zip(w).zip(&tried) {
                (l1, l2, xl) = (l1 + w * l, l2 + w * l * l, xl + w * l * x);
            }
            let determinant = sum_w * l2 - l1 * l1;
            if determinant <= 0.0 {
                continue;
            }
            let mut new = (sum_w * xl - sum_x * l1) / determinant;
            let mut new_min = (l2 * sum_x - l1 * xl) / determinant;
            if new_min > 0.0 {
                (new, new_min) = (xl / l2, 0.0);
            }
            let found = error(new, new_min, &tried);
            if found < least {
                (least, scale, min, best) = (found, new, new_min, tried);
            }
        }
        codes.iter_mut().zip(best).for_each(|(c, l)| *c = l as u8);
        (scale, -min)
    }

    fn affine<const GROUPS: usize>(&self, x: &[f32; LEN]) -> Affine<GROUPS> {
        let each = LEN / GROUPS;
        let mut codes = [0; LEN];
        let (mut lengths, mut depths) = ([0.0; GROUPS], [0.0; GROUPS]);
        for (i, (x, codes)) in x
            .chunks_exact(each)
            .zip(codes.chunks_exact_mut(each))
            .enumerate()
        {
            let mut weights = [0.0; LEN];
            (self.weights)(x, &mut weights[..each]);
            (lengths[i], depths[i]) = self.fit(x, &weights[..each], codes);
        }
        let (d, scales) = self.multiples(lengths);
        let (dmin, mins) = self.multiples(depths);
        for (i, (x, codes)) in x
            .chunks_exact(each)
            .zip(codes.chunks_exact_mut(each))
            .enumerate()
        {
            let step = d.to_f32() * f32::from(scales[i]);
            let low = dmin.to_f32() * f32::from(mins[i]);
            if step != 0.0 {
                let code = |x: &f32| self.code((x + low) / step) as u8;
                codes.iter_mut().zip(x).for_each(|(c, x)| *c = code(x));
            }
        }
        Affine {
            d,
            dmin,
            scales,
            mins,
            codes,
        }
    }

    /// Returns the unit that makes the largest length `scale_top` units, and the nearest multiple for each length.
    fn multiples<const N: usize>(&self, lengths: [f32; N]) -> (f16, [u8; N]) {
        let most = lengths.iter().copied().fold(0.0, f32::max);
        let top = self.scale_top as f32;
        let inverse = if most > 0.0 { top / most } else { 0.0 };
        let multiple = |x: f32| nearest(inverse * x).clamp(0, self.scale_top) as u8;
        (f16::from_f32(most / top), lengths.map(multiple))
    }
}

fn extreme(x: &[f32]) -> f32 {
    let larger = |a: f32, &b: &f32| if b.abs() > a.abs() { b } else { a };
    x.iter().fold(0.0, larger)
}

/// Returns the sums `Σ w·x·l` and `Σ w·l²` with `w = x²`.
fn sums(x: &[f32], codes: impl Iterator<Item = f32>) -> (f32, f32) {
    x.iter().zip(codes).fold((0.0, 0.0), |(a, b), (x, l)| {
        let w = x * x;
        (a + w * x * l, b + w * l * l)
    })
}

/// Returns the scale of a q3_k group. Changes codes one by one while the error decreases.
fn fit_q3(x: &[f32]) -> f32 {
    let extreme = extreme(x);
    if extreme.abs() < ZERO_GROUP {
        return 0.0;
    }
    let inverse = -4.0 / extreme;
    let mut codes: Vec<f32> = x
        .iter()
        .map(|x| nearest(inverse * x).clamp(-4, 3) as f32)
        .collect();
    let (mut sum, mut square) = sums(x, codes.iter().copied());
    for _ in 0..5 {
        let mut changed = false;
        for (x, code) in x.iter().zip(&mut codes) {
            let w = x * x;
            let (rest, rest_square) = (sum - w * x * *code, square - w * *code * *code);
            if rest <= 0.0 {
                continue;
            }
            let new = nearest(x * rest_square / rest).clamp(-4, 3) as f32;
            if new == *code {
                continue;
            }
            let (a, b) = (rest + w * x * new, rest_square + w * new * new);
            if b > 0.0 && a * a * square > sum * sum * b {
                (*code, sum, square, changed) = (new, a, b, true);
            }
        }
        if !changed {
            break;
        }
    }
    if square > 0.0 { sum / square } else { 0.0 }
}

/// Returns the scale of a q6_k group: the best of nineteen candidates.
fn fit_q6(x: &[f32]) -> f32 {
    let extreme = extreme(x);
    if extreme.abs() < ZERO_GROUP {
        return 0.0;
    }
    let tried = |top: f32| {
        let inverse = -top / extreme;
        sums(
            x,
            x.iter().map(|x| nearest(inverse * x).clamp(-32, 31) as f32),
        )
    };
    let (sum, square) = tried(32.0);
    let mut scale = if square == 0.0 { 0.0 } else { sum / square };
    let mut best = scale * sum;
    for step in (-9..=9).filter(|&s| s != 0) {
        let (sum, square) = tried(32.0 + 0.1 * step as f32);
        if square > 0.0 && sum * sum > best * square {
            scale = sum / square;
            best = scale * sum;
        }
    }
    scale
}

/// Encodes groups of 16 with scales from `-low` to `low - 1`; code `zero` means 0.
fn symmetric(x: &[f32; LEN], low: i32, zero: i32, fit: fn(&[f32]) -> f32) -> Symmetric {
    let mut lengths = [0.0; 16];
    for (length, x) in lengths.iter_mut().zip(x.chunks_exact(16)) {
        *length = fit(x);
    }
    let most = extreme(&lengths);
    let mut out = Symmetric {
        d: f16::ZERO,
        scales: [0; 16],
        codes: [0; LEN],
    };
    if most.abs() < ZERO_GROUP {
        return out;
    }
    let iscale = -(low as f32) / most;
    out.d = f16::from_f32(1.0 / iscale);
    let groups = x.chunks_exact(16).zip(out.codes.chunks_exact_mut(16));
    for (i, (x, codes)) in groups.enumerate() {
        let scale = nearest(iscale * lengths[i]).clamp(-low, low - 1);
        out.scales[i] = scale as i8;
        let step = out.d.to_f32() * scale as f32;
        for (code, x) in codes.iter_mut().zip(x) {
            let code_of = |x: f32| (nearest(x).clamp(-zero, zero - 1) + zero) as u8;
            *code = if step == 0.0 { 0 } else { code_of(x / step) };
        }
    }
    out
}

pub(super) fn encode_q3_k(x: &[f32; LEN]) -> [u8; 110] {
    pack_q3_k(&symmetric(x, 32, 4, fit_q3))
}

pub(super) fn encode_q6_k(x: &[f32; LEN]) -> [u8; 210] {
    pack_q6_k(&symmetric(x, 128, 32, fit_q6))
}

/// Encodes as ggml's `quantize_iq4_xs` without an importance matrix. `code` returns the nearest entry of `values`.
pub(super) fn encode_iq4_xs(x: &[f32; 256], values: &[f32; 16], code: fn(f32) -> u8) -> [u8; 136] {
    let value = |x: f32| values[usize::from(code(x))];
    let mut lengths = [0.0; 8];
    for (length, x) in lengths.iter_mut().zip(x.chunks_exact(32)) {
        let extreme = extreme(x);
        if extreme.abs() < ZERO_GROUP {
            continue;
        }
        let tried = |inverse: f32| sums(x, x.iter().map(|x| value(inverse * x)));
        let (sum, square) = tried(1.0 / (-extreme / values[0]));
        let mut d = if square > 0.0 { sum / square } else { 0.0 };
        let mut best = d * sum;
        for step in -7..=7 {
            let (sum, square) = tried((step as f32 + values[0]) / extreme);
            if square > 0.0 && sum * sum > best * square {
                d = sum / square;
                best = d * sum;
            }
        }
        *length = d;
    }
    let (mut block, mut codes, mut high) = ([0; 136], [0; 256], 0_u16);
    let d = -extreme(&lengths) / 32.0;
    let id = inverse(d);
    for (i, (x, codes)) in x
        .chunks_exact(32)
        .zip(codes.chunks_exact_mut(32))
        .enumerate()
    {
        let scale = nearest(id * lengths[i]).clamp(-32, 31);
        let inverse_step = inverse(d * scale as f32);
        let of = |x: &f32| code(inverse_step * x);
        codes.iter_mut().zip(x).for_each(|(c, x)| *c = of(x));
        let stored = (scale + 32) as u16;
        block[4 + i / 2] |= ((stored & 15) as u8) << (4 * (i % 2));
        high |= (stored >> 4) << (2 * i);
    }
    put_f16(&mut block, 0, f16::from_f32(d));
    block[2..4].copy_from_slice(&high.to_le_bytes());
    super::bits::pack(4, 16, &codes, &mut block[8..]);
    block
}
