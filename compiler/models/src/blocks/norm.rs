//! Normalisation with learned weights.

use tpc_ir::Value;
use tpc_ir::op::Norm;

use super::builder::Builder;
use super::context::Context;
use crate::description::Presence;
use crate::error::ArchError;
use crate::size::Size;
use crate::source::{Form, TensorRole};

/// The normalised residual stream `[n_embd, n]`, times the weight of that stem, plus its bias.
pub(crate) fn stream(
    b: &mut Builder<'_>,
    cx: &Context<'_>,
    stem: &str,
    x: Value,
    name: &str,
) -> Result<Value, ArchError> {
    affine(b, cx, stem, cx.hparams.embd(), cx.arch.norm.bias, x, name)
}

/// The normalised rows of `x`, times the weight of that stem and size, plus its bias.
pub(super) fn affine(
    b: &mut Builder<'_>,
    cx: &Context<'_>,
    stem: &str,
    size: Size,
    bias: Presence,
    x: Value,
    name: &str,
) -> Result<Value, ArchError> {
    let y = weighted(b, cx, stem, &[size], x, name)?;
    b.biased(stem, y, size, bias, name)
}

/// The normalised rows of `x`, times the weight of that stem and those sizes.
pub(super) fn weighted(
    b: &mut Builder<'_>,
    cx: &Context<'_>,
    stem: &str,
    sizes: &[Size],
    x: Value,
    name: &str,
) -> Result<Value, ArchError> {
    let tensor = weight_name(b, stem);
    let y = plain(b, cx, x, "norm")?;
    let weight = b.required(&tensor, sizes, TensorRole::NormWeight)?;
    b.mul(y, weight, name)
}

/// The normalised rows of `x`.
pub(super) fn plain(
    b: &mut Builder<'_>,
    cx: &Context<'_>,
    x: Value,
    name: &str,
) -> Result<Value, ArchError> {
    let norm = Norm {
        kind: cx.arch.norm.kind,
        eps: cx.hparams.eps,
    };
    b.push(norm, vec![x], name)
}

/// Whether the weight of a norm is there.
pub(crate) fn exists(
    b: &mut Builder<'_>,
    stem: &str,
    sizes: &[Size],
    presence: Presence,
) -> Result<bool, ArchError> {
    let tensor = weight_name(b, stem);
    let found = b.find(&tensor, sizes, TensorRole::NormWeight, presence)?;
    Ok(found.is_some())
}

/// The name of the weight of a norm. Some files leave out `weight`.
fn weight_name(b: &Builder<'_>, stem: &str) -> String {
    let bare = b.bare_name(stem);
    if b.offers(&bare, Form::Unusual) {
        return bare;
    }
    b.tensor_name(stem, "weight")
}
