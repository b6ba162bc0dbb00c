//! Sine and cosine in f64.
//!
//! The polynomials on `[−π/4, π/4]` come from FreeBSD's `k_sin.c` and `k_cos.c`.

const TWO_OVER_PI: f64 = std::f64::consts::FRAC_2_PI;
/// `π/2` in three parts. Each part times an integer below 2⁵¹ rounds once.
const PIO2: [f64; 3] = [
    std::f64::consts::FRAC_PI_2,
    6.123_233_995_736_766e-17,
    -1.497_384_904_859_169_8e-33,
];
/// Adding and subtracting this number rounds to an integer, which the low bits of the sum hold.
const ROUND: f64 = 6_755_399_441_055_744.0;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SinCos {
    pub(crate) sin: f64,
    pub(crate) cos: f64,
}

/// Computes sine and cosine of `x` radians to about 1e-15, for `|x|` up to 1e15.
#[inline(always)]
pub(crate) fn sin_cos(x: f64) -> SinCos {
    let shifted = x.mul_add(TWO_OVER_PI, ROUND);
    let n = shifted - ROUND;
    let r = PIO2.iter().fold(x, |r, part| n.mul_add(-part, r));
    let z = r * r;
    let mut s = 1.589_690_995_211_55e-10_f64;
    for c in [
        -2.505_076_025_340_686_3e-8,
        2.755_731_370_707_006_8e-6,
        -1.984_126_982_985_795e-4,
        8.333_333_333_322_49e-3,
        -1.666_666_666_666_663_2e-1,
    ] {
        s = s.mul_add(z, c);
    }
    let s = (s * z).mul_add(r, r);
    let mut c = -1.135_964_755_778_819_5e-11_f64;
    for k in [
        2.087_572_321_298_175e-9,
        -2.755_731_435_139_066_3e-7,
        2.480_158_728_947_673e-5,
        -1.388_888_888_887_411e-3,
        4.166_666_666_666_66e-2,
        -0.5,
    ] {
        c = c.mul_add(z, k);
    }
    let c = c.mul_add(z, 1.0);
    let quadrant = shifted.to_bits();
    let swap = quadrant & 1 == 1;
    let (sin, cos) = if swap { (c, s) } else { (s, c) };
    let sin = if quadrant & 2 == 2 { -sin } else { sin };
    let cos = if quadrant.wrapping_add(1) & 2 == 2 {
        -cos
    } else {
        cos
    };
    SinCos { sin, cos }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_quadrants_and_large_angles() {
        for i in -20_000..20_000_i32 {
            for scale in [0.001, 0.37, 97.3, 1e8] {
                let x = f64::from(i) * scale;
                let SinCos { sin, cos } = sin_cos(x);
                let near = |a: f64, b: f64| (a - b).abs() < 1e-15;
                assert!(near(sin, x.sin()) && near(cos, x.cos()), "{x}: {sin} {cos}");
            }
        }
    }
}
