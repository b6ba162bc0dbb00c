//! Functions of one number, element by element.
#![allow(unsafe_code)]

use tpc_ir::op::{Clamp, Fill, LeakyRelu, Scale, Unary, UnaryKind, Xielu};
use tpc_runtime::Gelu;

use super::pointwise::{each_chunk, read_piece};
use crate::error::KernelError;
use crate::launch::{Call, Elements, Launch, Request, Selected, ensure};
use crate::math;
use crate::simd::vectorised;

type Apply = Box<dyn Fn(&mut [f32]) + Send + Sync>;

/// Applies a function to each element. The result may share the operand's memory.
struct Map {
    apply: Apply,
}

impl std::fmt::Debug for Map {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Map")
    }
}

fn map(request: &Request<'_>, apply: impl Fn(&mut [f32]) + Send + Sync + 'static) -> Selected {
    request.expect(&[Elements::Real], &[Elements::Real])?;
    Ok(Box::new(Map {
        apply: Box::new(apply),
    }))
}

impl Launch for Map {
    unsafe fn run(&self, call: Call<'_>) -> Result<(), KernelError> {
        let ([x], [y]) = call.views()?;
        ensure(x.ne == y.ne, "mismatched sizes of x and the result")?;
        let (x, y) = match (x.flat(), y.flat()) {
            (Some(x), Some(y)) => (x, y),
            _ => (x, y),
        };
        // SAFETY: caller's contract; the views have equal sizes.
        unsafe {
            each_chunk(call.worker, &y, |piece, chunk| {
                read_piece(&x, piece, chunk);
                (self.apply)(chunk);
                Ok(())
            })
        }
    }
}

macro_rules! curves {
    ($($name:ident($($p:ident),*) = |$x:ident| $y:expr;)*) => {
        $(vectorised! {
            fn $name(values: &mut [f32] $(, $p: f32)*) {
                for v in values {
                    let $x = *v;
                    *v = $y;
                }
            }
        })*
    };
}

curves! {
    silu() = |x| math::silu(x);
    gelu_table() = |x| math::gelu(x, Gelu::GgmlTable);
    gelu_exact() = |x| math::gelu(x, Gelu::Exact);
    gelu_erf() = |x| math::gelu_erf(x);
    gelu_quick_table() = |x| math::gelu_quick(x, Gelu::GgmlTable);
    gelu_quick_exact() = |x| math::gelu_quick(x, Gelu::Exact);
    relu() = |x| if x > 0.0 { x } else { 0.0 };
    sigmoid() = |x| math::sigmoid(x);
    tanh() = |x| math::tanh(x);
    exp() = |x| math::exp(x);
    sqr() = |x| x * x;
    sqrt() = |x| x.sqrt();
    softplus() = |x| math::softplus(x);
    neg() = |x| -x;
    abs() = |x| x.abs();
    log() = |x| libm::log(f64::from(x)) as f32;
    sin() = |x| libm::sin(f64::from(x)) as f32;
    cos() = |x| libm::cos(f64::from(x)) as f32;
    sgn() = |x| f32::from(i8::from(x > 0.0) - i8::from(x < 0.0));
    step() = |x| if x > 0.0 { 1.0 } else { 0.0 };
    elu() = |x| if x > 0.0 { x } else { math::expm1(x) };
    expm1() = |x| math::expm1(x);
    hardswish() = |x| x * hard_sigmoid(x);
    hardsigmoid() = |x| hard_sigmoid(x);
    floor() = |x| x.floor();
    ceil() = |x| x.ceil();
    round() = |x| x.round();
    trunc() = |x| x.trunc();
    affine(scale, bias) = |x| x.mul_add(scale, bias);
    clamped(min, max) = |x| within(x, min, max);
    leaky(slope) = |x| if x > 0.0 { x } else { slope * x };
    xi(alpha_n, alpha_p, beta, eps) = |x| {
        let low = if x > eps { eps } else { x };
        let below = (math::expm1(low) - x).mul_add(alpha_n, beta * x);
        if x > 0.0 { (alpha_p * x).mul_add(x, beta * x) } else { below }
    };
}

#[inline(always)]
fn hard_sigmoid(x: f32) -> f32 {
    within((x + 3.0) / 6.0, 0.0, 1.0)
}

/// Computes `min(max(x, min), max)`. Keeps NaN.
#[inline(always)]
pub(super) fn within(x: f32, min: f32, max: f32) -> f32 {
    let x = if x < min { min } else { x };
    if x > max { max } else { x }
}

pub(super) fn unary(op: &Unary, request: &Request<'_>) -> Selected {
    let apply: fn(&mut [f32]) = match (op.kind, request.options.gelu) {
        (UnaryKind::Silu, _) => silu,
        (UnaryKind::Gelu, Gelu::GgmlTable) => gelu_table,
        (UnaryKind::Gelu, Gelu::Exact) => gelu_exact,
        (UnaryKind::GeluErf, _) => gelu_erf,
        (UnaryKind::GeluQuick, Gelu::GgmlTable) => gelu_quick_table,
        (UnaryKind::GeluQuick, Gelu::Exact) => gelu_quick_exact,
        (UnaryKind::Relu, _) => relu,
        (UnaryKind::Sigmoid, _) => sigmoid,
        (UnaryKind::Tanh, _) => tanh,
        (UnaryKind::Exp, _) => exp,
        (UnaryKind::Sqr, _) => sqr,
        (UnaryKind::Sqrt, _) => sqrt,
        (UnaryKind::Softplus, _) => softplus,
        (UnaryKind::Neg, _) => neg,
        (UnaryKind::Abs, _) => abs,
        (UnaryKind::Log, _) => log,
        (UnaryKind::Sin, _) => sin,
        (UnaryKind::Cos, _) => cos,
        (UnaryKind::Sgn, _) => sgn,
        (UnaryKind::Step, _) => step,
        (UnaryKind::Elu, _) => elu,
        (UnaryKind::Expm1, _) => expm1,
        (UnaryKind::Hardswish, _) => hardswish,
        (UnaryKind::Hardsigmoid, _) => hardsigmoid,
        (UnaryKind::Floor, _) => floor,
        (UnaryKind::Ceil, _) => ceil,
        (UnaryKind::Round, _) => round,
        (UnaryKind::Trunc, _) => trunc,
    };
    map(request, apply)
}

pub(super) fn scale(op: &Scale, request: &Request<'_>) -> Selected {
    let Scale { scale, bias } = *op;
    map(request, move |x| affine(x, scale, bias))
}

pub(super) fn clamp(op: &Clamp, request: &Request<'_>) -> Selected {
    let Clamp { min, max } = *op;
    map(request, move |x| clamped(x, min, max))
}

/// Copies the elements; the write converts and rounds.
pub(super) fn cast(request: &Request<'_>) -> Selected {
    map(request, |_| {})
}

pub(super) fn leaky_relu(op: &LeakyRelu, request: &Request<'_>) -> Selected {
    let slope = op.slope;
    map(request, move |x| leaky(x, slope))
}

pub(super) fn xielu(op: &Xielu, request: &Request<'_>) -> Selected {
    let Xielu {
        alpha_n,
        alpha_p,
        beta,
        eps,
    } = *op;
    map(request, move |x| xi(x, alpha_n, alpha_p, beta, eps))
}

/// Fills the result. Does not read the operand, which may be poison.
#[derive(Debug)]
struct Constant {
    value: f32,
}

pub(super) fn fill(op: &Fill, request: &Request<'_>) -> Selected {
    request.expect(&[Elements::Real], &[Elements::Real])?;
    Ok(Box::new(Constant { value: op.value }))
}

impl Launch for Constant {
    unsafe fn run(&self, call: Call<'_>) -> Result<(), KernelError> {
        let ([x], [y]) = call.views()?;
        ensure(x.ne == y.ne, "mismatched sizes of x and the result")?;
        // SAFETY: caller's contract.
        unsafe {
            each_chunk(call.worker, &y, |_, chunk| {
                chunk.fill(self.value);
                Ok(())
            })
        }
    }
}
