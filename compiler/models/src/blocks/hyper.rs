//! Residual streams side by side: `[n_embd, streams, n_tokens]`.

use tpc_ir::op::{Repeat, Scale, Sum, UnaryKind};
use tpc_ir::{DType, Dim, TensorType, Value};

use super::builder::Builder;
use super::context::Context;
use super::norm;
use crate::error::ArchError;
use crate::hparams::HyperHParams;
use crate::size::Size;
use crate::source::TensorRole;

/// What a sublayer reads and how its output joins the streams.
pub(super) struct Joint {
    /// `[n_embd, n_tokens]`
    pub(super) input: Value,
    /// A factor per stream on the output, `[1, streams, n_tokens]`.
    output: Value,
}

/// The streams that `x: [n_embd, n_tokens]` begins.
pub(crate) fn begin(
    b: &mut Builder<'_>,
    cx: &Context<'_>,
    hp: &HyperHParams,
    x: Value,
) -> Result<Value, ArchError> {
    repeated(b, cx, hp, x, "hc_init")
}

/// The input of the sublayer whose tensors begin with `tensor`.
pub(super) fn read(
    b: &mut Builder<'_>,
    cx: &Context<'_>,
    hp: &HyperHParams,
    tensor: &str,
    x: Value,
) -> Result<Joint, ArchError> {
    let n = hp.streams.n;
    let gates = gates(b, cx, hp, hp.gates, tensor, x)?;
    let factors = [Size::new(2, "two factors")];
    let name = b.tensor_name(&format!("{tensor}_scale"), "weight");
    let factors = b.required(&name, &factors, TensorRole::Scale)?;
    let name = b.tensor_name(&format!("{tensor}_base"), "weight");
    let bases = b.required(&name, &[hp.gates], TensorRole::Bias)?;
    let mut part = |which: u64, magnitude: f32, name: &str| {
        let gate = b.slice(gates, 0, which * n, n.into(), name)?;
        let factor = b.slice(factors, 0, which, Dim::ONE, name)?;
        let base = b.slice(bases, 0, which * n, n.into(), name)?;
        weights(b, hp, gate, [factor, base], magnitude, name)
    };
    let input = part(0, 1.0, "hc_pre")?;
    let output = part(1, hp.magnitude, "hc_post")?;
    Ok(Joint {
        input: sum(b, cx, x, input)?,
        output,
    })
}

/// The streams `x`, plus the output `y: [n_embd, n_tokens]` of a sublayer.
pub(super) fn write(
    b: &mut Builder<'_>,
    cx: &Context<'_>,
    hp: &HyperHParams,
    joint: &Joint,
    [x, y]: [Value; 2],
) -> Result<Value, ArchError> {
    let y = repeated(b, cx, hp, y, "hc_out")?;
    let y = b.mul(y, joint.output, "hc_out")?;
    b.add(x, y, "l_out")
}

/// The sum of the streams that the output reads, `[n_embd, n_tokens]`.
pub(crate) fn end(
    b: &mut Builder<'_>,
    cx: &Context<'_>,
    hp: &HyperHParams,
    x: Value,
) -> Result<Value, ArchError> {
    let gates = gates(b, cx, hp, hp.streams, "output_hc", x)?;
    let name = b.tensor_name("output_hc_scale", "weight");
    let factor = b.required(&name, &[Size::new(1, "one number")], TensorRole::Scale)?;
    let name = b.tensor_name("output_hc_base", "weight");
    let base = b.required(&name, &[hp.streams], TensorRole::Bias)?;
    let weights = weights(b, hp, gates, [factor, base], 1.0, "hc_head_pre")?;
    sum(b, cx, x, weights)
}

/// The gates that a matrix gives the norm of all streams, `[count, n_tokens]`.
fn gates(
    b: &mut Builder<'_>,
    cx: &Context<'_>,
    hp: &HyperHParams,
    count: Size,
    tensor: &str,
    x: Value,
) -> Result<Value, ArchError> {
    let flat = b.reshape(x, [hp.width.n.into(), b.n_tokens()], "hc_flat")?;
    let flat = norm::plain(b, cx, flat, "hc_norm")?;
    let name = b.tensor_name(&format!("{tensor}_fn"), "weight");
    let matrix = b.required(&name, &[hp.width, count], TensorRole::Router)?;
    b.mul_mat(matrix, flat, "hc_mixes")
}

/// A weight per stream, `[1, streams, n_tokens]`: the bounded gates.
fn weights(
    b: &mut Builder<'_>,
    hp: &HyperHParams,
    gates: Value,
    [factor, base]: [Value; 2],
    magnitude: f32,
    name: &str,
) -> Result<Value, ArchError> {
    let x = b.mul(gates, factor, name)?;
    let x = b.add(x, base, name)?;
    let x = b.unary(&[UnaryKind::Sigmoid], x, name)?;
    let bounded = Scale {
        scale: magnitude,
        bias: hp.eps,
    };
    let x = b.push(bounded, vec![x], name)?;
    b.reshape(x, [Dim::ONE, hp.streams.n.into(), b.n_tokens()], name)
}

/// The weighted sum of the streams, `[n_embd, n_tokens]`.
fn sum(
    b: &mut Builder<'_>,
    cx: &Context<'_>,
    x: Value,
    weights: Value,
) -> Result<Value, ArchError> {
    const NAME: &str = "hc_sum";
    let x = b.mul(x, weights, NAME)?;
    let x = b.push(Sum { axis: 1 }, vec![x], NAME)?;
    b.reshape(x, [cx.hparams.n_embd.into(), b.n_tokens()], NAME)
}

/// `x: [n_embd, n_tokens]`, once per stream.
fn repeated(
    b: &mut Builder<'_>,
    cx: &Context<'_>,
    hp: &HyperHParams,
    x: Value,
    name: &str,
) -> Result<Value, ArchError> {
    let n_embd: Dim = cx.hparams.n_embd.into();
    let x = b.reshape(x, [n_embd.clone(), Dim::ONE, b.n_tokens()], name)?;
    let all = [n_embd, hp.streams.n.into(), b.n_tokens()];
    let dims = TensorType::new(DType::F32, all).dims;
    b.push(Repeat { dims }, vec![x], name)
}
