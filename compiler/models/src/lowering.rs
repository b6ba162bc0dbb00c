//! Assembles the building blocks of a description.

use tpc_ir::{Dim, Graph, Symbol, Value};

use super::LowerOptions;
use super::blocks::builder::Builder;
use super::blocks::hparams::{HParams, Join, LayerFfn, Mixer};
use super::blocks::{
    Context, LayerContext, attention, embedding, ffn, head, latent, nextn, norm, per_layer,
    recurrent,
};
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
    let mut b = Builder::new(name, tokens(arch), source);
    let mut x = embedding::embedding(&mut b, &model)?;
    let own = per_layer::inputs(&mut b, &model, x)?;
    for layer in &hparams.layers {
        b.enter(Some(layer.index));
        let cx = LayerContext { model, layer };
        x = block(&mut b, &cx, own, x)?;
    }
    b.enter(None);
    let logits = head::logits(&mut b, &model, x)?;
    b.want("logits", logits);
    drafts(&mut b, model, x)?;
    Ok(b.finish())
}

/// The blocks that guess further tokens ahead, after all that logits depend on, where `x` leaves the last layer. The
/// output of the first is `draft_logits`, that of the second `draft_logits_2`.
fn drafts(b: &mut Builder<'_>, model: Context<'_>, mut x: Value) -> Result<(), ArchError> {
    let Some(form) = &model.arch.drafts else {
        return Ok(());
    };
    for (ahead, layer) in (1..).zip(&model.hparams.drafts) {
        b.enter(Some(layer.index));
        let cx = LayerContext { model, layer };
        if ahead == 1 {
            x = nextn::first_hidden(b, &cx, form, x)?;
        }
        let y = nextn::input(b, &cx, ahead, x)?;
        let y = block(b, &cx, None, y)?;
        let draft = nextn::output(b, &cx, form, y)?;
        x = draft.hidden;
        let name = match ahead {
            1 => "draft_logits".to_owned(),
            _ => format!("draft_logits_{ahead}"),
        };
        b.want(name, draft.logits);
    }
    b.enter(None);
    Ok(())
}

/// What counts the tokens of a batch: recurrent layers read them sequence by sequence.
fn tokens(arch: &Arch) -> Dim {
    if arch.recurrent.is_none() {
        return Symbol::NTokens.into();
    }
    let tokens = Dim::symbol(Symbol::NSeqs).checked_mul(&Symbol::NSeqTokens.into());
    tokens.expect("invariant: a product of two symbols does not overflow")
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
    let (Some(mixer), Some(ffn)) = (cx.layer.mixer, &cx.layer.ffn) else {
        return single(b, cx, x);
    };
    let halves = Halves { mixer, ffn };
    let x = match cx.model.hparams.join {
        Join::Sequential => sequential(b, cx, halves, x)?,
        Join::Parallel => parallel(b, cx, halves, cx.model.arch.norms.pre_ffn, x)?,
        Join::ByFfnNorm if has_norm(b, cx, cx.model.arch.norms.pre_ffn)? => {
            sequential(b, cx, halves, x)?
        }
        Join::ByFfnNorm => parallel(b, cx, halves, None, x)?,
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

/// What mixes the tokens of a layer.
fn mix(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    mixer: Mixer,
    x: Value,
) -> Result<Value, ArchError> {
    match (mixer, &cx.model.hparams.recurrent) {
        (Mixer::Recurrent, Some(hp)) => recurrent::recurrent(b, cx, hp, x),
        (Mixer::Both, Some(hp)) => {
            let attn = attend(b, cx, x)?;
            let y = recurrent::recurrent(b, cx, hp, x)?;
            b.add(attn, y, "mixers_out")
        }
        (Mixer::Attention | Mixer::Recurrent | Mixer::Both, _) => attend(b, cx, x),
    }
}

/// Attention, to latent vectors or to heads.
fn attend(b: &mut Builder<'_>, cx: &LayerContext<'_>, x: Value) -> Result<Value, ArchError> {
    match &cx.model.hparams.latent {
        Some(hp) => latent::latent(b, cx, hp, x),
        None => attention::attention(b, cx, x),
    }
}

/// The halves of a block that has both.
#[derive(Clone, Copy)]
struct Halves<'a> {
    mixer: Mixer,
    ffn: &'a LayerFfn,
}

/// A block with one half.
fn single(b: &mut Builder<'_>, cx: &LayerContext<'_>, x: Value) -> Result<Value, ArchError> {
    let y = normed(b, cx, cx.model.arch.norms.pre_attention, x, "attn_norm")?;
    let y = match (cx.layer.mixer, &cx.layer.ffn) {
        (Some(mixer), _) => mix(b, cx, mixer, y)?,
        (None, Some(form)) => ffn::ffn(b, cx, form, y)?,
        (None, None) => return Ok(x),
    };
    let y = joined(b, cx, y)?;
    b.add(y, x, "l_out")
}

/// What one half adds to the residual stream.
fn joined(b: &mut Builder<'_>, cx: &LayerContext<'_>, y: Value) -> Result<Value, ArchError> {
    match cx.model.hparams.residual_scale {
        Some(scale) => b.scale(y, scale, "residual_scaled"),
        None => Ok(y),
    }
}

fn sequential(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    halves: Halves<'_>,
    x: Value,
) -> Result<Value, ArchError> {
    let norms = &cx.model.arch.norms;
    let y = normed(b, cx, norms.pre_attention, x, "attn_norm")?;
    let y = mix(b, cx, halves.mixer, y)?;
    let y = normed(b, cx, norms.post_attention, y, "attn_post_norm")?;
    let y = joined(b, cx, y)?;
    let x = b.add(y, x, "ffn_inp")?;
    let y = normed(b, cx, norms.pre_ffn, x, "ffn_norm")?;
    let y = ffn::ffn(b, cx, halves.ffn, y)?;
    let y = normed(b, cx, norms.post_ffn, y, "ffn_post_norm")?;
    let y = joined(b, cx, y)?;
    b.add(y, x, "l_out")
}

fn parallel(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    halves: Halves<'_>,
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
    let attn = mix(b, cx, halves.mixer, input)?;
    let attn = normed(b, cx, norms.post_attention, attn, "attn_post_norm")?;
    let attn = joined(b, cx, attn)?;
    let input = match pre_ffn {
        Some(_) => normed(b, cx, pre_ffn, x, "ffn_norm")?,
        None => shared,
    };
    let y = ffn::ffn(b, cx, halves.ffn, input)?;
    let y = normed(b, cx, norms.post_ffn, y, "ffn_post_norm")?;
    let y = joined(b, cx, y)?;
    let x = b.add(x, y, "ffn_inp")?;
    b.add(x, attn, "l_out")
}
