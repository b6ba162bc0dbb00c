//! Parallel residual streams weighted by gates.

use tpc_ir::op::{HcComb, Scale, UnaryKind};
use tpc_ir::{Dim, Value};

use super::{Joint, sum};
use crate::blocks::builder::Builder;
use crate::blocks::context::Context;
use crate::blocks::norm;
use crate::description::HyperForm;
use crate::error::ArchError;
use crate::hparams::HyperHParams;
use crate::size::Size;
use crate::source::TensorRole;

pub(super) fn read(
    b: &mut Builder<'_>,
    cx: &Context<'_>,
    hp: &HyperHParams,
    tensor: &str,
    x: Value,
) -> Result<Joint, ArchError> {
    let n = hp.streams.n;
    let mixed = matches!(hp.form, HyperForm::Mixed(_));
    let gates = gates(b, cx, hp, hp.gates, tensor, x)?;
    let factors = match mixed {
        true => Size::new(3, "three factors"),
        false => Size::new(2, "two factors"),
    };
    let name = b.tensor_name(&format!("{tensor}_scale"), "weight");
    let factors = b.require(&name, &[factors], TensorRole::Scale)?;
    let name = b.tensor_name(&format!("{tensor}_base"), "weight");
    let bases = b.require(&name, &[hp.gates], TensorRole::Bias)?;
    let mut part = |which: u64, bounds: Scale, name: &str| {
        let gate = b.slice(gates, 0, which * n, n.into(), name)?;
        let factor = b.slice(factors, 0, which, Dim::ONE, name)?;
        let base = b.slice(bases, 0, which * n, n.into(), name)?;
        weights(b, hp, gate, [factor, base], bounds, name)
    };
    let input = part(0, inputs(hp), "hc_pre")?;
    let outputs = Scale {
        scale: hp.magnitude,
        bias: if mixed { 0.0 } else { hp.eps },
    };
    let output = part(1, outputs, "hc_post")?;
    let mixes = if mixed {
        let op = HcComb {
            eps: hp.eps,
            iterations: hp.iterations,
        };
        Some(b.push(op, vec![gates, factors, bases], "hc_comb")?)
    } else {
        None
    };
    Ok(Joint {
        input: weighted_sum(b, cx, x, input)?,
        output,
        mixes,
    })
}

/// Returns the gated sum of streams that the output reads, `[n_embd, n_tokens]`.
pub(super) fn merge_streams(
    b: &mut Builder<'_>,
    cx: &Context<'_>,
    hp: &HyperHParams,
    x: Value,
) -> Result<Value, ArchError> {
    let gates = gates(b, cx, hp, hp.streams, "output_hc", x)?;
    let name = b.tensor_name("output_hc_scale", "weight");
    let factor = b.require(&name, &[Size::new(1, "one number")], TensorRole::Scale)?;
    let name = b.tensor_name("output_hc_base", "weight");
    let base = b.require(&name, &[hp.streams], TensorRole::Bias)?;
    let weights = weights(b, hp, gates, [factor, base], inputs(hp), "hc_head_pre")?;
    weighted_sum(b, cx, x, weights)
}

fn inputs(hp: &HyperHParams) -> Scale {
    Scale {
        scale: 1.0,
        bias: hp.eps,
    }
}

/// Returns the gates that a matrix computes from the norm of all streams, `[count, n_tokens]`.
fn gates(
    b: &mut Builder<'_>,
    cx: &Context<'_>,
    hp: &HyperHParams,
    count: Size,
    tensor: &str,
    x: Value,
) -> Result<Value, ArchError> {
    let flat = b.reshape(x, [hp.width.n.into(), b.n_tokens()], "hc_flat")?;
    let flat = norm::without_weight(b, cx, flat, "hc_norm")?;
    let name = b.tensor_name(&format!("{tensor}_fn"), "weight");
    let matrix = b.require(&name, &[hp.width, count], TensorRole::Router)?;
    b.mul_mat(matrix, flat, "hc_mixes")
}

/// Returns bounded gates, one per stream, `[1, streams, n_tokens]`.
fn weights(
    b: &mut Builder<'_>,
    hp: &HyperHParams,
    gates: Value,
    [factor, base]: [Value; 2],
    bounds: Scale,
    name: &str,
) -> Result<Value, ArchError> {
    let x = b.mul(gates, factor, name)?;
    let x = b.add(x, base, name)?;
    let x = b.unary(&[UnaryKind::Sigmoid], x, name)?;
    let x = b.push(bounds, vec![x], name)?;
    b.reshape(x, [Dim::ONE, hp.streams.n.into(), b.n_tokens()], name)
}

fn weighted_sum(
    b: &mut Builder<'_>,
    cx: &Context<'_>,
    x: Value,
    weights: Value,
) -> Result<Value, ArchError> {
    let x = b.mul(x, weights, "hc_sum")?;
    sum(b, cx, x)
}
