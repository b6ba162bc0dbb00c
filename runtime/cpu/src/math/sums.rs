//! Sums in a fixed order, independent of the vector width.
//!
//! f32 sums use [`LANES`] lanes: element `i` goes to lane `i mod LANES`, and a binary tree adds the lanes.

use crate::simd::vectorised;

pub(crate) const LANES: usize = 16;

/// Returns the [`LANES`] elements from element `at`, which exist.
#[inline(always)]
pub(crate) fn lanes(x: &[f32], at: usize) -> &[f32; LANES] {
    x[at..]
        .first_chunk()
        .expect("invariant: whole groups of lanes")
}

/// Returns the [`LANES`] elements from element `at`, which exist.
#[inline(always)]
pub(crate) fn lanes_mut(x: &mut [f32], at: usize) -> &mut [f32; LANES] {
    x[at..]
        .first_chunk_mut()
        .expect("invariant: whole groups of lanes")
}

/// Adds the lanes as a binary tree: the upper half to the lower half.
#[inline(always)]
pub(crate) fn fold(lanes: [f32; LANES]) -> f32 {
    let mut a = [0.0; 8];
    for i in 0..8 {
        a[i] = lanes[i] + lanes[i + 8];
    }
    let b = [a[0] + a[4], a[1] + a[5], a[2] + a[6], a[3] + a[7]];
    (b[0] + b[2]) + (b[1] + b[3])
}

/// Sums `f` over blocks of 512 in f32, and sums the blocks in f64.
#[inline(always)]
fn blocks(x: &[f32], f: impl Fn(f32, f32) -> f32) -> f64 {
    let mut total = 0.0;
    for block in x.chunks(512) {
        let (groups, rest) = block.as_chunks::<LANES>();
        let mut lanes = [0.0; LANES];
        for group in groups {
            for i in 0..LANES {
                lanes[i] = f(group[i], lanes[i]);
            }
        }
        for (lane, &x) in lanes.iter_mut().zip(rest) {
            *lane = f(x, *lane);
        }
        total += f64::from(fold(lanes));
    }
    total
}

vectorised! {
    pub(crate) fn sum(x: &[f32]) -> f64 {
        blocks(x, |x, sum| sum + x)
    }
}

vectorised! {
    pub(crate) fn sum_of_squares(x: &[f32]) -> f64 {
        blocks(x, |x, sum| x.mul_add(x, sum))
    }
}

vectorised! {
    pub(crate) fn sum_of_squares_about(x: &[f32], mean: f32) -> f64 {
        blocks(x, |x, sum| (x - mean).mul_add(x - mean, sum))
    }
}

vectorised! {
    /// Computes `Σ a·b` over the length of the shorter slice.
    pub(crate) fn dot(a: &[f32], b: &[f32]) -> f32 {
        let n = a.len().min(b.len());
        let (a, a_rest) = a[..n].as_chunks::<LANES>();
        let (b, b_rest) = b[..n].as_chunks::<LANES>();
        let mut lanes = [0.0_f32; LANES];
        for (a, b) in a.iter().zip(b) {
            for i in 0..LANES {
                lanes[i] = a[i].mul_add(b[i], lanes[i]);
            }
        }
        for (lane, (a, b)) in lanes.iter_mut().zip(a_rest.iter().zip(b_rest)) {
            *lane = a.mul_add(*b, *lane);
        }
        fold(lanes)
    }
}

vectorised! {
    /// Returns the largest element, ignoring NaN; −∞ if empty.
    pub(crate) fn max(x: &[f32]) -> f32 {
        let (groups, rest) = x.as_chunks::<LANES>();
        let mut lanes = [f32::NEG_INFINITY; LANES];
        for group in groups {
            for i in 0..LANES {
                lanes[i] = if group[i] > lanes[i] { group[i] } else { lanes[i] };
            }
        }
        for (lane, &x) in lanes.iter_mut().zip(rest) {
            *lane = if x > *lane { x } else { *lane };
        }
        lanes.into_iter().fold(f32::NEG_INFINITY, |a, b| if b > a { b } else { a })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_any_length() {
        for n in [0_u16, 1, 15, 16, 17, 511, 513, 2048, 2050] {
            let x: Vec<f32> = (0..n).map(|i| f32::from(i % 7) - 2.5).collect();
            let wide = || x.iter().map(|&x| f64::from(x));
            assert_eq!(sum(&x), wide().sum::<f64>());
            assert_eq!(sum_of_squares(&x), wide().map(|x| x * x).sum::<f64>());
            assert_eq!(f64::from(dot(&x, &x)), wide().map(|x| x * x).sum::<f64>());
            let about = wide().map(|x| (x - 0.5) * (x - 0.5)).sum::<f64>();
            assert_eq!(sum_of_squares_about(&x, 0.5), about);
        }
        assert_eq!(max(&[]), f32::NEG_INFINITY);
        assert_eq!(max(&[-3.0, f32::NAN, -2.0]), -2.0);
    }
}
