//! The exponential function in f32.

/// Adding and subtracting this number rounds magnitudes below 2²² to the nearest integer, ties to even. The low bits
/// of the sum hold the integer.
const ROUND: f32 = 12_582_912.0;
/// `ln 2` truncated to 15 bits, and the remainder.
const LN2_HIGH: f32 = 0.693_359_4;
const LN2_LOW: f32 = -2.121_944_4e-4;
/// For smaller `x`, `eˣ < 5e-38` becomes 0.
const LEAST: f32 = -86.0;
/// From this `x` on, `eˣ` is infinite in f32.
const MOST: f32 = 88.8;

/// Returns the integer `n` nearest to `x / ln 2`, and `eʳ − 1 − r` of the remainder `r = x − n · ln 2`; the caller
/// adds `r`. `|r| ≤ 0.347`.
#[inline(always)]
fn reduced(x: f32) -> (f32, u32, f32, f32) {
    let shifted = x.mul_add(std::f32::consts::LOG2_E, ROUND);
    let n = shifted - ROUND;
    let r = n.mul_add(-LN2_HIGH, x);
    let r = n.mul_add(-LN2_LOW, r);
    // Taylor series. The first omitted term is r⁸/8! < 6e-9 of the sum.
    let mut p = 1.0 / 5040.0_f32;
    p = p.mul_add(r, 1.0 / 720.0);
    p = p.mul_add(r, 1.0 / 120.0);
    p = p.mul_add(r, 1.0 / 24.0);
    p = p.mul_add(r, 1.0 / 6.0);
    p = p.mul_add(r, 0.5);
    (n, shifted.to_bits(), r, p * r * r)
}

/// Computes `2ⁿ⁻¹` from the low bits of a rounded sum, for `n` from −125 to 128.
#[inline(always)]
fn half_power(bits: u32) -> f32 {
    let n = bits.wrapping_sub(ROUND.to_bits());
    f32::from_bits(n.wrapping_add(126) << 23)
}

/// Computes `eˣ` to about 1 unit in the last place; 0 below −86.
#[inline(always)]
pub(crate) fn exp(x: f32) -> f32 {
    let bounded = if x > MOST { MOST } else { x };
    let bounded = if bounded < LEAST { LEAST } else { bounded };
    let (_, bits, r, tail) = reduced(bounded);
    let y = (1.0 + (r + tail)) * half_power(bits) * 2.0;
    if x < LEAST { 0.0 } else { y }
}

/// Computes `eˣ − 1`, to about 2 units in the last place, also near 0.
#[inline(always)]
pub(crate) fn expm1(x: f32) -> f32 {
    let bounded = if x > MOST { MOST } else { x };
    let bounded = if bounded < -20.0 { -20.0 } else { bounded };
    let (n, bits, r, tail) = reduced(bounded);
    let small = r + tail;
    let half = half_power(bits);
    // 2ⁿ(1 + s) − 1 = 2ⁿ·s + (2ⁿ − 1), halved to avoid overflow.
    let y = (small * half + (half - 0.5)) * 2.0;
    if n == 0.0 { small } else { y }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponentials_agree_with_f64() {
        for i in -8600..8872 {
            let x = i as f32 * 0.01 + 0.003_1;
            let (y, wanted) = (f64::from(exp(x)), f64::from(x).exp());
            assert!((y / wanted - 1.0).abs() < 1.5e-7, "exp({x}) = {y}");
        }
        for i in -3000..8872 {
            let x = i as f32 * 0.01 + 0.000_1;
            let (y, wanted) = (f64::from(expm1(x)), f64::from(x).exp_m1());
            assert!(
                (y / wanted - 1.0).abs() < 2.5e-7,
                "expm1({x}) = {y}, {wanted}"
            );
        }
        for x in [1e-30_f32, -1e-10, 1e-4, 0.0] {
            let wanted = f64::from(x).exp_m1();
            assert!((f64::from(expm1(x)) - wanted).abs() <= 1e-7 * wanted.abs());
        }
    }

    #[test]
    fn ends_of_the_range() {
        assert_eq!(exp(f32::NEG_INFINITY), 0.0);
        assert_eq!(exp(-1000.0), 0.0);
        assert_eq!(exp(0.0), 1.0);
        assert_eq!(exp(f32::INFINITY), f32::INFINITY);
        assert!(exp(f32::NAN).is_nan());
        assert_eq!(expm1(f32::INFINITY), f32::INFINITY);
        assert_eq!(expm1(-1000.0), -1.0);
        assert!(expm1(f32::NAN).is_nan());
    }
}
