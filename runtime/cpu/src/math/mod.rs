//! Mathematical functions with the same bits on every machine, unlike the system's `expf`. Hot kernels use this
//! module's polynomials; other functions come from `libm`, which uses plain arithmetic only.

mod angle;
mod curves;
mod exp;
mod half;
mod sums;

pub(crate) use angle::sin_cos;
pub(crate) use curves::{gelu, gelu_erf, gelu_quick, sigmoid, silu, softplus, tanh};
pub(crate) use exp::{exp, expm1};
pub(crate) use half::{bf16_to_f32, f16_to_f32, f32_to_bf16, f32_to_f16};
pub(crate) use sums::{
    LANES, dot, fold, lanes, lanes_mut, max, sum, sum_of_squares, sum_of_squares_about,
};
