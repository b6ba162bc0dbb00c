//! Assembles the building blocks of a description.

use tpc_ir::{Graph, Symbol, Value};

use super::LowerOptions;
use super::blocks::builder::Builder;
use super::blocks::hparams::HParams;
use super::blocks::{Context, LayerContext, attention, embedding, ffn, head, norm};
use super::description::{Arch, Residual};
use super::error::ArchError;
use super::source::TensorSource;

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
    for layer in &hparams.layers {
        b.enter(Some(layer.index));
        let cx = LayerContext { model, layer };
        x = match arch.residual {
            Residual::Sequential => sequential(&mut b, &cx, x)?,
            Residual::Parallel => parallel(&mut b, &cx, x)?,
        };
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

fn sequential(b: &mut Builder<'_>, cx: &LayerContext<'_>, x: Value) -> Result<Value, ArchError> {
    let norms = &cx.model.arch.norms;
    let y = normed(b, cx, norms.pre_attention, x, "attn_norm")?;
    let y = attention::attention(b, cx, y)?;
    let y = normed(b, cx, norms.post_attention, y, "attn_post_norm")?;
    let x = b.add(y, x, "ffn_inp")?;
    let y = normed(b, cx, norms.pre_ffn, x, "ffn_norm")?;
    let y = ffn::ffn(b, cx, y)?;
    let y = normed(b, cx, norms.post_ffn, y, "ffn_post_norm")?;
    b.add(y, x, "l_out")
}

fn parallel(b: &mut Builder<'_>, cx: &LayerContext<'_>, x: Value) -> Result<Value, ArchError> {
    let norms = &cx.model.arch.norms;
    let input = normed(b, cx, norms.pre_attention, x, "attn_norm")?;
    let attn = attention::attention(b, cx, input)?;
    let attn = normed(b, cx, norms.post_attention, attn, "attn_post_norm")?;
    let input = match norms.pre_ffn {
        Some(_) => normed(b, cx, norms.pre_ffn, x, "ffn_norm")?,
        None => input,
    };
    let y = ffn::ffn(b, cx, input)?;
    let y = normed(b, cx, norms.post_ffn, y, "ffn_post_norm")?;
    let x = b.add(x, y, "ffn_inp")?;
    b.add(x, attn, "l_out")
}
