use tpc_ir::Value;
use tpc_ir::op::Norm;

use super::builder::Builder;
use super::context::Context;
use crate::description::{BlockNorms, Presence, WeightPlace};
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
    if cx.hparams.norm.groups > 1 {
        let full_name = weight_name(b, &cx.arch.norms, tensor);
        let y = by_groups(b, cx, x)?;
        let weight = b.require(&full_name, &[cx.hparams.embd()], TensorRole::NormWeight)?;
        return b.mul(y, weight, name);
    }
    affine(b, cx, tensor, cx.hparams.embd(), form.bias, x, name)
}

/// Normalises the equal parts of the residual stream `[n_embd, n]` separately.
fn by_groups(b: &mut Builder<'_>, cx: &Context<'_>, x: Value) -> Result<Value, ArchError> {
    const NAME: &str = "norm";
    let (embd, groups) = (cx.hparams.n_embd, cx.hparams.norm.groups);
    let n = b.dims(x)[1].clone();
    let x = b.reshape(x, [(embd / groups).into(), groups.into(), n.clone()], NAME)?;
    let y = without_weight(b, cx, x, NAME)?;
    b.reshape(y, [embd.into(), n], NAME)
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

/// Normalises as [`stream`], without a bias and with this kind and epsilon.
pub(crate) fn of_kind(
    b: &mut Builder<'_>,
    cx: &Context<'_>,
    tensor: &str,
    NormHParams { kind, eps, .. }: NormHParams,
    x: Value,
    name: &str,
) -> Result<Value, ArchError> {
    let full_name = weight_name(b, &cx.arch.norms, tensor);
    let y = b.push(Norm { kind, eps }, vec![x], "norm")?;
    let weight = b.require(&full_name, &[cx.hparams.embd()], TensorRole::NormWeight)?;
    b.mul(y, weight, name)
}

/// Normalises the rows of `x` with the epsilon of output norms, and multiplies by a weight of this size, if the
/// model has the tensor.
pub(super) fn post(
    b: &mut Builder<'_>,
    cx: &Context<'_>,
    tensor: Option<(&str, WeightPlace)>,
    size: Size,
    x: Value,
    name: &str,
) -> Result<Value, ArchError> {
    let norm = Norm {
        kind: cx.hparams.norm.kind,
        eps: cx.hparams.norm.post_eps,
    };
    let Some((tensor, place)) = tensor else {
        return b.push(norm, vec![x], name);
    };
    let full_name = weight_name(b, &cx.arch.norms, tensor);
    match place {
        WeightPlace::Result => {
            let y = b.push(norm, vec![x], "norm")?;
            let weight = b.require(&full_name, &[size], TensorRole::NormWeight)?;
            b.mul(y, weight, name)
        }
        WeightPlace::Input => {
            let weight = b.require(&full_name, &[size], TensorRole::NormWeight)?;
            let x = b.mul(x, weight, "norm_inp")?;
            b.push(norm, vec![x], name)
        }
    }
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
