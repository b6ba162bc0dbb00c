//! Assembles the building blocks of a description.

use tpc_ir::{Graph, Symbol, Value};

use super::LowerOptions;
use super::blocks::builder::Builder;
use super::blocks::hparams::{HParams, Join};
use super::blocks::{Context, LayerContext, attention, embedding, ffn, head, norm, per_layer};
use super::description::{Arch, Presence};
use super::error::ArchError;
use super::source::{Size, TensorRole, TensorSource};

/// The graph of a model with these hyper-parameters and the tensors of `source`.
pub(super) fn build(
    arch: &Arch,
    hparams: &HParams,
    options: &LowerOptions,
    source: &mut dyn TensorSource,
) -> Result<Graph, ArchError> {
    let model = Context {
        arch,
        hparams,
        options,
    };
    let name = hparams.name.as_deref().unwrap_or(arch.name);
    let mut b = Builder::new(name, Symbol::NTokens.into(), source);
    let mut x = embedding::embedding(&mut b, &model)?;
    let own = per_layer::inputs(&mut b, &model, x)?;
    for layer in &hparams.layers {
        b.enter(Some(layer.index));
        let cx = LayerContext { model, layer };
        x = block(&mut b, &cx, own, x)?;
    }
    b.enter(None);
    let logits = head::logits(&mut b, &model, x)?;
    Ok(b.finish(logits))
}

/// Normalises where the description does.
fn normed(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    stem: Option<&str>,
    x: Value,
    name: &str,
) -> Result<Value, ArchError> {
    match stem {
        Some(stem) => norm::stream(b, &cx.model, stem, x, name),
        None => Ok(x),
    }
}

/// A block, where layers have the embeddings `own`, if any.
fn block(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    own: Option<Value>,
    x: Value,
) -> Result<Value, ArchError> {
    let x = match cx.model.hparams.join {
        Join::Sequential => sequential(b, cx, x)?,
        Join::Parallel => parallel(b, cx, cx.model.arch.norms.pre_ffn, x)?,
        Join::ByFfnNorm if has_norm(b, cx, cx.model.arch.norms.pre_ffn)? => sequential(b, cx, x)?,
        Join::ByFfnNorm => parallel(b, cx, None, x)?,
    };
    let x = match own {
        Some(own) => per_layer::admit(b, cx, own, x)?,
        None => x,
    };
    let scale = b.tensor_name("layer_output_scale", "weight");
    let one = Size {
        n: 1,
        from: "one number",
    };
    let presence = cx.model.arch.layer_scale;
    match b.optional(&scale, &[one], TensorRole::Scale, presence)? {
        Some(scale) => b.mul(x, scale, "l_out_scaled"),
        None => Ok(x),
    }
}

/// Whether a layer has the norm of that stem.
fn has_norm(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    stem: Option<&str>,
) -> Result<bool, ArchError> {
    let sizes = [cx.model.hparams.embd()];
    stem.map_or(Ok(false), |stem| {
        norm::exists(b, stem, &sizes, Presence::Optional)
    })
}

/// What one half adds to the residual stream.
fn joined(b: &mut Builder<'_>, cx: &LayerContext<'_>, y: Value) -> Result<Value, ArchError> {
    match cx.model.hparams.residual_scale {
        Some(scale) => b.scale(y, scale, "residual_scaled"),
        None => Ok(y),
    }
}

fn sequential(b: &mut Builder<'_>, cx: &LayerContext<'_>, x: Value) -> Result<Value, ArchError> {
    let norms = &cx.model.arch.norms;
    let y = normed(b, cx, norms.pre_attention, x, "attn_norm")?;
    let y = attention::attention(b, cx, y)?;
    let y = normed(b, cx, norms.post_attention, y, "attn_post_norm")?;
    let y = joined(b, cx, y)?;
    let x = b.add(y, x, "ffn_inp")?;
    let y = normed(b, cx, norms.pre_ffn, x, "ffn_norm")?;
    let y = ffn::ffn(b, cx, y)?;
    let y = normed(b, cx, norms.post_ffn, y, "ffn_post_norm")?;
    let y = joined(b, cx, y)?;
    b.add(y, x, "l_out")
}

fn parallel(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    pre_ffn: Option<&str>,
    x: Value,
) -> Result<Value, ArchError> {
    let norms = &cx.model.arch.norms;
    let shared = normed(b, cx, norms.pre_attention, x, "attn_norm")?;
    let input = if has_norm(b, cx, norms.own_attention)? {
        normed(b, cx, norms.own_attention, x, "attn_norm_2")?
    } else {
        shared
    };
    let attn = attention::attention(b, cx, input)?;
    let attn = normed(b, cx, norms.post_attention, attn, "attn_post_norm")?;
    let attn = joined(b, cx, attn)?;
    let input = match pre_ffn {
        Some(_) => normed(b, cx, pre_ffn, x, "ffn_norm")?,
        None => shared,
    };
    let y = ffn::ffn(b, cx, input)?;
    let y = normed(b, cx, norms.post_ffn, y, "ffn_post_norm")?;
    let y = joined(b, cx, y)?;
    let x = b.add(x, y, "ffn_inp")?;
    b.add(x, attn, "l_out")
}
