//! Parallel residual streams with low-rank gates per element.

use tpc_ir::op::UnaryKind;
use tpc_ir::{Dim, Value};

use super::{Joint, mean};
use crate::blocks::builder::Builder;
use crate::blocks::context::Context;
use crate::blocks::norm;
use crate::description::Presence;
use crate::error::ArchError;
use crate::hparams::HyperHParams;
use crate::source::TensorRole;

pub(super) fn read(
    b: &mut Builder<'_>,
    cx: &Context<'_>,
    hp: &HyperHParams,
    tensor: &str,
    x: Value,
) -> Result<Joint, ArchError> {
    let normed = flat_norm(b, cx, hp, &format!("{tensor}_norm"), x)?;
    let input = gated_mean(b, cx, hp, tensor, normed)?;
    let (sizes, absent) = ([hp.width, hp.streams], Presence::Absent);
    let inject = format!("{tensor}_inject");
    let gates = b.linear(&inject, normed, sizes, absent, TensorRole::Router, &inject)?;
    let gates = b.scale(gates, 1.0 / hp.streams.n as f32, "hc_inject")?;
    let gates = b.unary(&[UnaryKind::Sigmoid], gates, "hc_inject")?;
    let gates = b.scale(gates, hp.magnitude, "hc_inject")?;
    let dims = [Dim::ONE, hp.streams.n.into(), b.n_tokens()];
    Ok(Joint {
        input,
        output: b.reshape(gates, dims, "hc_inject")?,
        mixes: None,
    })
}

/// Returns the gated mean of streams that the output reads, `[n_embd, n_tokens]`.
pub(super) fn merge_streams(
    b: &mut Builder<'_>,
    cx: &Context<'_>,
    hp: &HyperHParams,
    x: Value,
) -> Result<Value, ArchError> {
    let normed = flat_norm(b, cx, hp, "output_hc_norm", x)?;
    gated_mean(b, cx, hp, "output_hc", normed)
}

/// Returns the norms of the streams, `[n_embd · streams, n_tokens]`.
fn flat_norm(
    b: &mut Builder<'_>,
    cx: &Context<'_>,
    hp: &HyperHParams,
    tensor: &str,
    x: Value,
) -> Result<Value, ArchError> {
    let x = stream_norm(b, cx, hp, tensor, x)?;
    b.reshape(x, [hp.width.n.into(), b.n_tokens()], "hc_norm")
}

/// Normalises each stream of `x: [n_embd, streams, n_tokens]` and multiplies it by a weight per element of all streams.
/// Files have the weights as a matrix or one row.
pub(in crate::blocks) fn stream_norm(
    b: &mut Builder<'_>,
    cx: &Context<'_>,
    hp: &HyperHParams,
    tensor: &str,
    x: Value,
) -> Result<Value, ArchError> {
    let embd = cx.hparams.embd();
    let name = b.tensor_name(tensor, "weight");
    let role = TensorRole::NormWeight;
    let weight = if b.columns(&name) == Some(1) {
        let weight = b.require(&name, &[hp.width], role)?;
        b.reshape(weight, [embd.n.into(), hp.streams.n.into()], "hc_norm")?
    } else {
        b.require(&name, &[embd, hp.streams], role)?
    };
    let x = norm::without_weight(b, cx, x, "hc_norm")?;
    b.mul(x, weight, "hc_norm")
}

/// Returns the gated mean of the streams, `[n_embd, n_tokens]`, given their norms.
fn gated_mean(
    b: &mut Builder<'_>,
    cx: &Context<'_>,
    hp: &HyperHParams,
    tensor: &str,
    normed: Value,
) -> Result<Value, ArchError> {
    let [down, up] = ["down", "up"].map(|part| format!("{tensor}_{part}"));
    let x = b.project(&down, normed, [hp.width, hp.rank], &down)?;
    let x = b.scale(x, 1.0 / hp.streams.n as f32, "hc_low")?;
    let x = b.unary(&[UnaryKind::Silu], x, "hc_low")?;
    let x = b.project(&up, x, [hp.rank, hp.width], &up)?;
    let gate = b.unary(&[UnaryKind::Sigmoid], x, "hc_gate")?;
    let x = b.mul(normed, gate, "hc_gated")?;
    let dims = [cx.hparams.n_embd.into(), hp.streams.n.into(), b.n_tokens()];
    let x = b.reshape(x, dims, "hc_gated")?;
    mean(b, cx, hp, x)
}
