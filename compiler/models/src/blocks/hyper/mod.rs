//! Parallel residual streams, `[n_embd, streams, n_tokens]`.

mod gated;
mod low_rank;

use tpc_ir::op::{Permute, Repeat, Scale, Sum};
use tpc_ir::{DType, Dim, TensorType, Value};

use super::builder::Builder;
use super::context::Context;
pub(super) use low_rank::stream_norm;

use crate::description::{HyperForm, StreamsEnd};
use crate::error::ArchError;
use crate::hparams::HyperHParams;

/// A sublayer's input, and the weights that add the sublayer's output to the streams.
pub(super) struct Joint {
    /// Input, `[n_embd, n_tokens]`.
    pub(super) input: Value,
    /// Factor on the output per stream, `[1, streams, n_tokens]`.
    output: Value,
    /// Matrix that mixes the streams, `[streams, streams, n_tokens]`; results are along axis 0.
    mixes: Option<Value>,
}

pub(crate) fn start_streams(
    b: &mut Builder<'_>,
    cx: &Context<'_>,
    hp: &HyperHParams,
    x: Value,
) -> Result<Value, ArchError> {
    repeat_streams(b, cx, hp, x, "hc_init")
}

/// Returns the input of the sublayer whose tensors begin with `tensor`.
pub(super) fn read(
    b: &mut Builder<'_>,
    cx: &Context<'_>,
    hp: &HyperHParams,
    tensor: &str,
    x: Value,
) -> Result<Joint, ArchError> {
    match hp.form {
        HyperForm::Gated | HyperForm::Mixed(_) => gated::read(b, cx, hp, tensor, x),
        HyperForm::LowRank => low_rank::read(b, cx, hp, tensor, x),
    }
}

/// Adds a sublayer's output `y: [n_embd, n_tokens]` to the streams `x`, which `self.mixes` mixes first, if any.
pub(super) fn write(
    b: &mut Builder<'_>,
    cx: &Context<'_>,
    hp: &HyperHParams,
    joint: &Joint,
    [x, y]: [Value; 2],
) -> Result<Value, ArchError> {
    let x = match joint.mixes {
        Some(mixes) => {
            let axes = [1, 0, 2, 3];
            let x = b.push(Permute { axes }, vec![x], "hc_streams")?;
            let mixes = b.push(Permute { axes }, vec![mixes], "hc_comb")?;
            b.mul_mat(x, mixes, "hc_mixed")?
        }
        None => x,
    };
    let y = repeat_streams(b, cx, hp, y, "hc_out")?;
    let y = b.mul(y, joint.output, "hc_out")?;
    b.add(x, y, "l_out")
}

/// Returns the combined streams that the output reads, `[n_embd, n_tokens]`.
pub(crate) fn merge_streams(
    b: &mut Builder<'_>,
    cx: &Context<'_>,
    hp: &HyperHParams,
    x: Value,
) -> Result<Value, ArchError> {
    match hp.form {
        HyperForm::Gated | HyperForm::Mixed(StreamsEnd::Gated) => {
            gated::merge_streams(b, cx, hp, x)
        }
        HyperForm::Mixed(StreamsEnd::Mean) => mean(b, cx, hp, x),
        HyperForm::LowRank => low_rank::merge_streams(b, cx, hp, x),
    }
}

/// Returns the sum of the streams, `[n_embd, n_tokens]`.
fn sum(b: &mut Builder<'_>, cx: &Context<'_>, x: Value) -> Result<Value, ArchError> {
    const NAME: &str = "hc_sum";
    let x = b.push(Sum { axis: 1 }, vec![x], NAME)?;
    b.reshape(x, [cx.hparams.n_embd.into(), b.n_tokens()], NAME)
}

/// Returns the mean of the streams, `[n_embd, n_tokens]`.
fn mean(
    b: &mut Builder<'_>,
    cx: &Context<'_>,
    hp: &HyperHParams,
    x: Value,
) -> Result<Value, ArchError> {
    let x = sum(b, cx, x)?;
    let scale = 1.0 / hp.streams.n as f32;
    b.push(Scale { scale, bias: 0.0 }, vec![x], "hc_mean")
}

pub(super) fn repeat_streams(
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
