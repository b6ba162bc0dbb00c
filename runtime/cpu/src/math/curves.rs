//! Activation functions in f32.

use tpc_runtime::Gelu;

use super::exp::{exp, expm1};
use super::half::through_f16;

#[inline(always)]
pub(crate) fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

#[inline(always)]
pub(crate) fn silu(x: f32) -> f32 {
    x / (1.0 + exp(-x))
}

/// Computes `tanh |x| = e / (e + 2)` with `e = e^(2|x|) − 1`. For `|x| ≥ 10`, the result is ±1 in f32.
#[inline(always)]
pub(crate) fn tanh(x: f32) -> f32 {
    let a = x.abs();
    let a = if a > 10.0 { 10.0 } else { a };
    let e = expm1(2.0 * a);
    (e / (e + 2.0)).copysign(x)
}

#[inline(always)]
pub(crate) fn softplus(x: f32) -> f32 {
    let bound = if x > 0.0 { x } else { 0.0 };
    let tail = libm::log1p(libm::exp(-f64::from(x.abs())));
    if x.is_nan() { x } else { bound + tail as f32 }
}

const CUBIC: f32 = 0.044_715;
const SQRT_2_OVER_PI: f32 = 0.797_884_6;

/// Computes GELU's tanh form. `½ · (1 + tanh y)` is `σ(2y)`, which avoids cancellation.
#[inline(always)]
fn gelu_tanh(x: f32) -> f32 {
    x * sigmoid(2.0 * SQRT_2_OVER_PI * x * (1.0 + CUBIC * x * x))
}

/// Computes GELU's tanh form, rounded to f16 if `form` is ggml's table.
#[inline(always)]
pub(crate) fn gelu(x: f32, form: Gelu) -> f32 {
    match form {
        Gelu::Exact => gelu_tanh(x),
        Gelu::GgmlTable => {
            let y = through_f16(gelu_tanh(through_f16(x)));
            let y = if x <= -10.0 { 0.0 } else { y };
            if x >= 10.0 { x } else { y }
        }
    }
}

#[inline(always)]
pub(crate) fn gelu_quick(x: f32, form: Gelu) -> f32 {
    let f = |x: f32| x * (1.0 / (1.0 + exp(-1.702 * x)));
    match form {
        Gelu::Exact => f(x),
        Gelu::GgmlTable => through_f16(f(through_f16(x))),
    }
}

/// Coefficients of `ln(erfc(z) · e^(z²) / t)` as a polynomial in `t = 1 / (1 + z/2)`: least squares at Chebyshev
/// nodes for `z` from 0 to 9.5, accurate to 5e-8.
const ERFC: [f32; 10] = [
    -1.265_433_4,
    0.998_341_44,
    0.389_117_15,
    0.022_874_143,
    0.035_467_863,
    -0.144_173_5,
    -0.619_523_35,
    1.099_438_4,
    -0.656_615_85,
    0.140_507_13,
];

/// Computes `1 − erf(z)` for `z ≥ 0`, with a relative error of about 3e-7.
#[inline(always)]
fn erfc(z: f32) -> f32 {
    let t = 1.0 / 0.5_f32.mul_add(z, 1.0);
    let p = ERFC.iter().rev().fold(0.0, |p: f32, c| p.mul_add(t, *c));
    t * exp(z.mul_add(-z, p))
}

/// Computes GELU's erf form as `½ · x · erfc(−x/√2)`, which avoids cancellation.
#[inline(always)]
pub(crate) fn gelu_erf(x: f32) -> f32 {
    let half = 0.5 * x * erfc(x.abs() * std::f32::consts::FRAC_1_SQRT_2);
    if x < 0.0 { half } else { x - half }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_agree_with_f64() {
        for i in -2000..2000 {
            let x = i as f32 * 0.01 + 0.001_7;
            let w = f64::from(x);
            let near = |found: f32, wanted: f64| {
                (f64::from(found) - wanted).abs() <= 4e-7 * wanted.abs().max(1e-3)
            };
            assert!(near(tanh(x), w.tanh()), "tanh({x}) = {}", tanh(x));
            assert!(near(sigmoid(x), 1.0 / (1.0 + (-w).exp())), "sigmoid({x})");
            assert!(near(silu(x), w / (1.0 + (-w).exp())), "silu({x})");
            let erf = 0.5 * w * (1.0 + libm::erf(w * std::f64::consts::FRAC_1_SQRT_2));
            assert!(
                (f64::from(gelu_erf(x)) - erf).abs() < 3e-7 * w.abs(),
                "gelu_erf({x})"
            );
            assert!(near(softplus(x), w.exp().ln_1p()), "softplus({x})");
        }
        assert_eq!(tanh(f32::INFINITY), 1.0);
        assert_eq!(tanh(-1e-20), -1e-20);
        assert!(tanh(f32::NAN).is_nan() && softplus(f32::NAN).is_nan());
        assert_eq!(softplus(1000.0), 1000.0);
        assert_eq!(gelu(-10.0, Gelu::GgmlTable), 0.0);
        assert_eq!(gelu(10.000_001, Gelu::GgmlTable), 10.000_001);
        // f16(1/3) = 0.333251953125, whose GELU is 0.21012091…, in f16 0.2100830078125.
        assert_eq!(gelu(1.0 / 3.0, Gelu::GgmlTable), 0.210_083_01);
    }
}
