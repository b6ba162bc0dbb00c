use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI};

use half::f16;
use tpc_ir::op::{Binary, BinaryKind, Cast, Clamp, Glu, GluKind, Scale, Unary, UnaryKind};

use super::{Gelu, Options};
use crate::error::ExecError;
use crate::reference::rounding::round_rows;
use crate::tensor::{Tensor, buffer};

/// Computes erf with the series `2/√π · e^(−x²) · Σ 2ⁿ x^(2n+1) / (2n+1)!!`, whose terms have the same sign and do not
/// cancel.
fn erf(x: f64) -> f64 {
    let a = x.abs();
    if a > 6.0 {
        return x.signum();
    }
    let (mut sum, mut term, mut n) = (a, a, 1.0);
    while term > sum * 1e-17 {
        term *= 2.0 * a * a / (2.0 * n + 1.0);
        sum += term;
        n += 1.0;
    }
    (FRAC_2_SQRT_PI * (-a * a).exp() * sum).copysign(x)
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

fn hard_sigmoid(x: f64) -> f64 {
    within((x + 3.0) / 6.0, 0.0, 1.0)
}

fn silu(x: f64) -> f64 {
    x / (1.0 + (-x).exp())
}

/// Computes `ln(1 + eˣ)` without overflow.
pub(super) fn softplus(x: f64) -> f64 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

fn gelu_erf(x: f64) -> f64 {
    0.5 * x * (1.0 + erf(x * FRAC_1_SQRT_2))
}

const GELU_CUBIC: f32 = 0.044_715;
const SQRT_2_OVER_PI: f32 = 0.797_884_6;
const GELU_QUICK: f32 = -1.702;

fn round_f16(x: f64) -> f32 {
    f16::from_f32(x as f32).to_f32()
}

/// `Gelu::GgmlTable` computes in f32, as ggml does.
fn gelu(x: f64, form: Gelu) -> f64 {
    match form {
        Gelu::Exact => {
            let root = (2.0 / std::f64::consts::PI).sqrt();
            0.5 * x * (1.0 + (root * x * (1.0 + 0.044_715 * x * x)).tanh())
        }
        Gelu::GgmlTable if x <= -10.0 => 0.0,
        Gelu::GgmlTable if x >= 10.0 => x,
        Gelu::GgmlTable => {
            let h = round_f16(x);
            let y = 0.5 * h * (1.0 + (SQRT_2_OVER_PI * h * (1.0 + GELU_CUBIC * h * h)).tanh());
            f16::from_f32(y).to_f64()
        }
    }
}

fn gelu_quick(x: f64, form: Gelu) -> f64 {
    match form {
        Gelu::Exact => x / (1.0 + (-1.702 * x).exp()),
        Gelu::GgmlTable => {
            let h = round_f16(x);
            f16::from_f32(h * (1.0 / (1.0 + (GELU_QUICK * h).exp()))).to_f64()
        }
    }
}

fn relu(x: f64) -> f64 {
    if x > 0.0 { x } else { 0.0 }
}

pub(super) fn map(x: &Tensor, f: impl Fn(f64) -> f64) -> Result<Tensor, ExecError> {
    let mut out = buffer(x.dims())?;
    out.extend(x.reals()?.iter().map(|&v| f(v)));
    Tensor::reals_of(x.dims(), out)
}

pub(super) fn unary(
    op: &Unary,
    operands: &[&Tensor],
    options: Options,
) -> Result<Tensor, ExecError> {
    let form = options.gelu;
    let x = operands[0];
    match op.kind {
        UnaryKind::Silu => map(x, silu),
        UnaryKind::Gelu => map(x, |v| gelu(v, form)),
        UnaryKind::GeluErf => map(x, gelu_erf),
        UnaryKind::GeluQuick => map(x, |v| gelu_quick(v, form)),
        UnaryKind::Relu => map(x, relu),
        UnaryKind::Sigmoid => map(x, sigmoid),
        UnaryKind::Tanh => map(x, f64::tanh),
        UnaryKind::Exp => map(x, f64::exp),
        UnaryKind::Sqr => map(x, |v| v * v),
        UnaryKind::Sqrt => map(x, f64::sqrt),
        UnaryKind::Softplus => map(x, softplus),
        UnaryKind::Neg => map(x, |v| -v),
        UnaryKind::Abs => map(x, f64::abs),
        UnaryKind::Log => map(x, f64::ln),
        UnaryKind::Sin => map(x, f64::sin),
        UnaryKind::Cos => map(x, f64::cos),
        UnaryKind::Sgn => map(x, |v| f64::from(i8::from(v > 0.0) - i8::from(v < 0.0))),
        UnaryKind::Step => map(x, |v| f64::from(u8::from(v > 0.0))),
        UnaryKind::Elu => map(x, |v| if v > 0.0 { v } else { v.exp_m1() }),
        UnaryKind::Expm1 => map(x, f64::exp_m1),
        UnaryKind::Hardswish => map(x, |v| v * hard_sigmoid(v)),
        UnaryKind::Hardsigmoid => map(x, hard_sigmoid),
        UnaryKind::Floor => map(x, f64::floor),
        UnaryKind::Ceil => map(x, f64::ceil),
        UnaryKind::Round => map(x, f64::round),
        UnaryKind::Trunc => map(x, f64::trunc),
    }
}

pub(super) fn binary(op: &Binary, operands: &[&Tensor]) -> Result<Tensor, ExecError> {
    let f: fn(f64, f64) -> f64 = match op.kind {
        BinaryKind::Add => |a, b| a + b,
        BinaryKind::Sub => |a, b| a - b,
        BinaryKind::Mul => |a, b| a * b,
        BinaryKind::Div => |a, b| a / b,
    };
    let (a, b) = (operands[0], operands[1]);
    let (da, db) = (a.dims(), b.dims());
    let (va, vb) = (a.reals()?, b.reals()?);
    let mut out = buffer(da)?;
    if va.is_empty() {
        return Tensor::reals_of(da, out);
    }
    for (row, x) in va.chunks_exact(da[0]).enumerate() {
        let (i1, i2, i3) = (
            row % da[1] % db[1],
            row / da[1] % da[2] % db[2],
            row / da[1] / da[2] % db[3],
        );
        let at = ((i3 * db[2] + i2) * db[1] + i1) * db[0];
        let y = vb[at..at + db[0]].iter().cycle();
        out.extend(x.iter().zip(y).map(|(&x, &y)| f(x, y)));
    }
    Tensor::reals_of(da, out)
}

pub(super) fn scale(op: &Scale, operands: &[&Tensor]) -> Result<Tensor, ExecError> {
    let (scale, bias) = (f64::from(op.scale), f64::from(op.bias));
    map(operands[0], |x| scale * x + bias)
}

pub(super) fn clamp(op: &Clamp, operands: &[&Tensor]) -> Result<Tensor, ExecError> {
    let (min, max) = (f64::from(op.min), f64::from(op.max));
    map(operands[0], |x| within(x, min, max))
}

pub(super) fn cast(op: &Cast, operands: &[&Tensor]) -> Result<Tensor, ExecError> {
    let dims = operands[0].dims();
    let mut out = operands[0].reals()?.into_owned();
    round_rows(op.to, dims[0], &mut out)?;
    Tensor::reals_of(dims, out)
}

/// Computes `min(max(x, min), max)`; keeps NaN.
fn within(x: f64, min: f64, max: f64) -> f64 {
    let x = if x < min { min } else { x };
    if x > max { max } else { x }
}

pub(super) fn glu(op: &Glu, operands: &[&Tensor], options: Options) -> Result<Tensor, ExecError> {
    let form = options.gelu;
    let (alpha, limit) = (f64::from(op.alpha), f64::from(op.limit));
    let f = |gate: f64, up: f64| match op.kind {
        GluKind::Swiglu => silu(gate) * up,
        GluKind::Geglu => gelu(gate, form) * up,
        GluKind::GegluErf => gelu_erf(gate) * up,
        GluKind::GegluQuick => gelu_quick(gate, form) * up,
        GluKind::Reglu => relu(gate) * up,
        GluKind::SwigluClamp => silu(gate.min(limit)) * within(up, -limit, limit),
        GluKind::SwigluOai => {
            let g = if gate > limit { limit } else { gate };
            g / (1.0 + (-alpha * g).exp()) * (within(up, -limit, limit) + 1.0)
        }
    };
    let first = operands[0].reals()?;
    let mut dims = operands[0].dims();
    if operands.len() == 2 {
        let up = operands[1].reals()?;
        let mut out = buffer(dims)?;
        out.extend(first.iter().zip(up.iter()).map(|(&g, &u)| f(g, u)));
        return Tensor::reals_of(dims, out);
    }
    dims[0] /= 2;
    let mut out = buffer(dims)?;
    if dims[0] > 0 {
        for row in first.chunks_exact(2 * dims[0]) {
            let (gate, up) = row.split_at(dims[0]);
            out.extend(gate.iter().zip(up).map(|(&g, &u)| f(g, u)));
        }
    }
    Tensor::reals_of(dims, out)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{close, code, ints, real, run};
    use super::*;

    fn unary_of(kind: UnaryKind, x: f64) -> f64 {
        let t = run(Unary { kind }, &[&real(&[1], &[x])], &[1]);
        t.reals().expect("real")[0]
    }

    #[test]
    fn erf_agrees_with_its_tables() {
        // From the C library's `erf`.
        for (x, y) in [
            (0.1, 0.112_462_916_018_284_9),
            (0.5, 0.520_499_877_813_046_5),
            (1.0, 0.842_700_792_949_714_9),
            (2.0, 0.995_322_265_018_952_7),
            (3.5, 0.999_999_256_901_627_7),
            (7.0, 1.0),
        ] {
            assert!((erf(x) - y).abs() < 1e-14, "erf({x}) = {}", erf(x));
            assert_eq!(erf(-x), -erf(x));
        }
        assert_eq!(erf(0.0), 0.0);
        assert!(erf(f64::NAN).is_nan());
    }

    #[test]
    fn functions_of_one_number() {
        use UnaryKind as K;
        for (kind, x, y) in [
            (K::Silu, 1.0, 0.731_058_578_630_004_9),
            (K::GeluErf, 1.0, 0.841_344_746_068_542_9),
            (K::Relu, -2.0, 0.0),
            (K::Relu, 2.0, 2.0),
            (K::Sigmoid, 0.0, 0.5),
            (K::Tanh, 1.0, 0.761_594_155_955_764_9),
            (K::Exp, 1.0, std::f64::consts::E),
            (K::Sqr, -3.0, 9.0),
            (K::Sqrt, 9.0, 3.0),
            (K::Softplus, 0.0, std::f64::consts::LN_2),
            (K::Softplus, 1000.0, 1000.0),
            (K::Softplus, -1000.0, 0.0),
            (K::Neg, 2.0, -2.0),
            (K::Abs, -2.0, 2.0),
            (K::Log, std::f64::consts::E, 1.0),
            (K::Sin, std::f64::consts::FRAC_PI_6, 0.5),
            (K::Cos, std::f64::consts::FRAC_PI_3, 0.5),
            (K::Sgn, -0.5, -1.0),
            (K::Sgn, 0.0, 0.0),
            (K::Step, 0.5, 1.0),
            (K::Step, 0.0, 0.0),
            (K::Elu, 2.0, 2.0),
            (K::Elu, -std::f64::consts::LN_2, -0.5),
            (K::Expm1, std::f64::consts::LN_2, 1.0),
            (K::Hardswish, 0.0, 0.0),
            (K::Hardswish, 1.5, 1.125),
            (K::Hardswish, 4.0, 4.0),
            (K::Hardsigmoid, -4.0, 0.0),
            (K::Hardsigmoid, 1.5, 0.75),
            (K::Floor, -1.5, -2.0),
            (K::Ceil, -1.5, -1.0),
            (K::Round, -1.5, -2.0),
            (K::Trunc, -1.5, -1.0),
        ] {
            let found = unary_of(kind, x);
            assert!((found - y).abs() < 1e-14, "{kind:?}({x}) = {found}");
        }
    }

    #[test]
    fn gelu_comes_from_a_table_of_f16() {
        assert_eq!(unary_of(UnaryKind::Gelu, -10.0), 0.0);
        assert_eq!(unary_of(UnaryKind::Gelu, 10.000_001), 10.000_001);
        // f16(1/3) = 0.333251953125, whose GELU is 0.21012091…, in f16 0.2100830078125.
        assert_eq!(unary_of(UnaryKind::Gelu, 1.0 / 3.0), 0.210_083_007_812_5);
        let exact = gelu(1.0 / 3.0, Gelu::Exact);
        assert!((exact - 0.210_182_461_323_969_26).abs() < 1e-15);
        let quick = unary_of(UnaryKind::GeluQuick, 0.5);
        assert_eq!(
            quick,
            f16::from_f64(0.5 / (1.0 + (-0.851_f64).exp())).to_f64()
        );
    }

    #[test]
    fn b_repeats_over_a() {
        let a = real(&[4, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
        let op = Binary {
            kind: BinaryKind::Mul,
        };
        let b = real(&[2, 1], &[1.0, 10.0]);
        let expected = [1.0, 20.0, 3.0, 40.0, 5.0, 60.0, 7.0, 80.0];
        close(&run(op.clone(), &[&a, &b], &[4, 2]), &expected);
        let b = real(&[1, 2], &[1.0, 10.0]);
        let expected = [1.0, 2.0, 3.0, 4.0, 50.0, 60.0, 70.0, 80.0];
        close(&run(op.clone(), &[&a, &b], &[4, 2]), &expected);
        let a = real(&[1, 1, 4, 2], &[1.0; 8]);
        let b = real(&[1, 1, 2, 1], &[3.0, 5.0]);
        let expected = [3.0, 5.0, 3.0, 5.0, 3.0, 5.0, 3.0, 5.0];
        close(&run(op.clone(), &[&a, &b], &[1, 1, 4, 2]), &expected);
        let three = real(&[3, 1], &[0.0; 3]);
        assert_eq!(code(op.clone(), &[&three, &b], &[3, 1]), "TPC0502");
        assert_eq!(code(op, &[&ints(&[1], &[1]), &b], &[1]), "TPC0502");
    }

    #[test]
    fn subtraction_and_division_are_not_symmetric() {
        let (a, b) = (real(&[2], &[1.0, 6.0]), real(&[2], &[2.0, 3.0]));
        let of = |kind| run(Binary { kind }, &[&a, &b], &[2]);
        close(&of(BinaryKind::Sub), &[-1.0, 3.0]);
        close(&of(BinaryKind::Div), &[0.5, 2.0]);
        close(&of(BinaryKind::Add), &[3.0, 9.0]);
    }

    #[test]
    fn scale_and_clamp() {
        let x = real(&[3], &[-2.0, 0.5, 2.0]);
        let op = Scale {
            scale: 2.0,
            bias: 1.0,
        };
        close(&run(op, &[&x], &[3]), &[-3.0, 2.0, 5.0]);
        let op = Clamp {
            min: -1.0,
            max: 1.0,
        };
        close(&run(op, &[&x], &[3]), &[-1.0, 0.5, 1.0]);
    }

    #[test]
    fn gated_activations_take_two_operands_or_halves() {
        let op = Glu::new(GluKind::Reglu);
        let (g, u) = (real(&[2, 1], &[-1.0, 2.0]), real(&[2, 1], &[5.0, 7.0]));
        close(&run(op.clone(), &[&g, &u], &[2]), &[0.0, 14.0]);
        let both = real(&[4, 2], &[-1.0, 2.0, 5.0, 7.0, 1.0, 1.0, 3.0, 4.0]);
        close(&run(op, &[&both], &[2, 2]), &[0.0, 14.0, 3.0, 4.0]);
        let swiglu = run(Glu::new(GluKind::Swiglu), &[&g, &u], &[2]);
        close(&swiglu, &[silu(-1.0) * 5.0, silu(2.0) * 7.0]);
        let erf = run(Glu::new(GluKind::GegluErf), &[&g, &u], &[2]);
        close(&erf, &[gelu_erf(-1.0) * 5.0, gelu_erf(2.0) * 7.0]);
        let table = run(Glu::new(GluKind::Geglu), &[&g, &u], &[2]);
        close(
            &table,
            &[
                gelu(-1.0, Gelu::GgmlTable) * 5.0,
                gelu(2.0, Gelu::GgmlTable) * 7.0,
            ],
        );
    }

    #[test]
    fn swiglu_oai_bounds_both_sides_of_up_but_one_of_gate() {
        let op = Glu {
            kind: GluKind::SwigluOai,
            alpha: 1.5,
            limit: 7.0,
        };
        let g = real(&[3], &[9.0, -9.0, 1.0]);
        let u = real(&[3], &[8.0, -8.0, 0.5]);
        let expected = [
            7.0 / (1.0 + (-10.5_f64).exp()) * 8.0,
            -9.0 / (1.0 + 13.5_f64.exp()) * -6.0,
            1.0 / (1.0 + (-1.5_f64).exp()) * 1.5,
        ];
        close(&run(op, &[&g, &u], &[3]), &expected);
    }

    #[test]
    fn swiglu_clamp_bounds_both_sides_of_up_but_one_of_gate() {
        let op = Glu {
            limit: 2.0,
            ..Glu::new(GluKind::SwigluClamp)
        };
        let (g, u) = (real(&[2], &[9.0, -9.0]), real(&[2], &[8.0, -8.0]));
        let expected = [silu(2.0) * 2.0, silu(-9.0) * -2.0];
        close(&run(op, &[&g, &u], &[2]), &expected);
    }

    #[test]
    fn nothing_in_nothing_out() {
        let none = real(&[0, 3], &[]);
        let op = Binary {
            kind: BinaryKind::Add,
        };
        assert!(run(op.clone(), &[&none, &none], &[0, 3]).is_empty());
        assert!(run(op, &[&none, &real(&[1, 3], &[1.0; 3])], &[0, 3]).is_empty());
        assert!(run(Glu::new(GluKind::Swiglu), &[&none], &[0, 3]).is_empty());
        assert!(run(Glu::new(GluKind::Swiglu), &[&none, &none], &[0, 3]).is_empty());
        let no_rows = real(&[4, 0], &[]);
        assert!(run(Glu::new(GluKind::Swiglu), &[&no_rows], &[2, 0]).is_empty());
    }
}
