use tpc_ir::Value;
use tpc_ir::op::Norm;

use super::builder::Builder;
use super::context::Context;
use crate::description::{BlockNorms, Presence};
use crate::error::ArchError;
use crate::hparams::NormHParams;
use crate::size::Size;
use crate::source::{Form, TensorRole};

/// Normalises the residual stream `[n_embd, n]` with this tensor's weight, and its bias if described.
pub(crate) fn stream(
    b: &mut Builder<'_>,
    cx: &Context<'_>,
    tensor: &str,
    x: Value,
    name: &str,
) -> Result<Value, ArchError> {
    let form = &cx.arch.norm;
    if form.weight == Presence::Absent {
        return without_weight(b, cx, x, name);
    }
    affine(b, cx, tensor, cx.hparams.embd(), form.bias, x, name)
}

/// Normalises the last layer's output `[n_embd, n]`, if the description has this norm.
pub(crate) fn output(
    b: &mut Builder<'_>,
    cx: &Context<'_>,
    x: Value,
    name: &str,
) -> Result<Value, ArchError> {
    match cx.arch.head.norm {
        Some(tensor) => b.with_model_tensors(|b| stream(b, cx, tensor, x, name)),
        None => Ok(x),
    }
}

/// Normalises as [`stream`], without a bias and with its own epsilon.
pub(crate) fn with_eps(
    b: &mut Builder<'_>,
    cx: &Context<'_>,
    tensor: &str,
    eps: f32,
    x: Value,
    name: &str,
) -> Result<Value, ArchError> {
    let kind = cx.arch.norm.kind;
    of_kind(b, cx, tensor, NormHParams { kind, eps }, x, name)
}

/// Normalises as [`stream`], without a bias and with this kind and epsilon.
pub(crate) fn of_kind(
    b: &mut Builder<'_>,
    cx: &Context<'_>,
    tensor: &str,
    NormHParams { kind, eps }: NormHParams,
    x: Value,
    name: &str,
) -> Result<Value, ArchError> {
    let full_name = weight_name(b, &cx.arch.norms, tensor);
    let y = b.push(Norm { kind, eps }, vec![x], "norm")?;
    let weight = b.require(&full_name, &[cx.hparams.embd()], TensorRole::NormWeight)?;
    b.mul(y, weight, name)
}

/// Normalises the rows of `x`, multiplies them by the weight of `tensor`, and adds its bias.
pub(super) fn affine(
    b: &mut Builder<'_>,
    cx: &Context<'_>,
    tensor: &str,
    size: Size,
    bias: Presence,
    x: Value,
    name: &str,
) -> Result<Value, ArchError> {
    let y = with_weight(b, cx, tensor, &[size], x, name)?;
    b.add_bias(tensor, y, size, bias, name)
}

/// Normalises the rows of `x` and multiplies them by the weight of `tensor`, which has these sizes.
pub(super) fn with_weight(
    b: &mut Builder<'_>,
    cx: &Context<'_>,
    tensor: &str,
    sizes: &[Size],
    x: Value,
    name: &str,
) -> Result<Value, ArchError> {
    let full_name = weight_name(b, &cx.arch.norms, tensor);
    let y = without_weight(b, cx, x, "norm")?;
    let weight = b.require(&full_name, sizes, TensorRole::NormWeight)?;
    b.mul(y, weight, name)
}

pub(crate) fn without_weight(
    b: &mut Builder<'_>,
    cx: &Context<'_>,
    x: Value,
    name: &str,
) -> Result<Value, ArchError> {
    let norm = Norm {
        kind: cx.hparams.norm.kind,
        eps: cx.hparams.norm.eps,
    };
    b.push(norm, vec![x], name)
}

pub(crate) fn exists(
    b: &mut Builder<'_>,
    cx: &Context<'_>,
    tensor: &str,
    sizes: &[Size],
    presence: Presence,
) -> Result<bool, ArchError> {
    let full_name = weight_name(b, &cx.arch.norms, tensor);
    let found = b.find(&full_name, sizes, TensorRole::NormWeight, presence)?;
    Ok(found.is_some())
}

/// Returns the name of a norm's weight. Some files leave out `weight`.
fn weight_name(b: &Builder<'_>, norms: &BlockNorms, tensor: &str) -> String {
    let bare = b.bare_name(tensor);
    let form = if norms.bare.contains(&tensor) {
        Form::Usual
    } else {
        Form::Unusual
    };
    if b.offers(&bare, form) {
        return bare;
    }
    b.tensor_name(tensor, "weight")
}
