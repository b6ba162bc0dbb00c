//! A layer: its sublayers, which mix tokens and transform each by itself, between norms and residual sums.

use tpc_ir::Value;

use super::builder::Builder;
use super::context::LayerContext;
use super::{attention, ffn, latent, norm, per_layer, recurrent, residual};
use crate::description::Presence;
use crate::error::ArchError;
use crate::hparams::{Join, LayerFfn, Mixer};
use crate::size::Size;
use crate::source::TensorRole;

/// The output `[n_embd, n_tokens]` of a layer for the input `x` alike, given the embeddings per layer if there are
/// some.
pub(crate) fn layer(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    per_layer: Option<Value>,
    x: Value,
) -> Result<Value, ArchError> {
    let (Some(mixer), Some(ffn)) = (cx.layer.mixer, &cx.layer.ffn) else {
        return single(b, cx, x);
    };
    let sublayers = Sublayers { mixer, ffn };
    let pre_ffn = cx.model.arch.norms.pre_ffn;
    let x = match cx.model.hparams.join {
        Join::Sequential => sequential(b, cx, sublayers, x)?,
        Join::FromNorms => from_norms(b, cx, sublayers, x)?,
        Join::Attended { period } => attended(b, cx, sublayers, period, x)?,
        Join::Parallel => parallel(b, cx, sublayers, pre_ffn, x)?,
        Join::ByFfnNorm if has_norm(b, cx, pre_ffn)? => sequential(b, cx, sublayers, x)?,
        Join::ByFfnNorm => parallel(b, cx, sublayers, None, x)?,
    };
    let x = match per_layer {
        Some(all) => per_layer::add(b, cx, all, x)?,
        None => x,
    };
    let scale = b.tensor_name("layer_output_scale", "weight");
    let one = Size::new(1, "one number");
    let presence = cx.model.arch.layer_scale;
    match b.optional(&scale, &[one], TensorRole::Scale, presence)? {
        Some(scale) => b.mul(x, scale, "l_out_scaled"),
        None => Ok(x),
    }
}

/// The two sublayers of most layers.
#[derive(Clone, Copy)]
struct Sublayers<'a> {
    mixer: Mixer,
    ffn: &'a LayerFfn,
}

/// A layer with one sublayer.
fn single(b: &mut Builder<'_>, cx: &LayerContext<'_>, x: Value) -> Result<Value, ArchError> {
    let y = normed(b, cx, cx.model.arch.norms.pre_attention, x, "attn_norm")?;
    let y = match (cx.layer.mixer, &cx.layer.ffn) {
        (Some(mixer), _) => mix(b, cx, mixer, y)?,
        (None, Some(form)) => ffn::ffn(b, cx, form, y)?,
        (None, None) => return Ok(x),
    };
    let y = scaled(b, cx, y)?;
    b.add(y, x, "l_out")
}

/// The feed-forward sublayer reads the sum of the layer's input and the mixer's output.
fn sequential(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    sublayers: Sublayers<'_>,
    x: Value,
) -> Result<Value, ArchError> {
    let norms = &cx.model.arch.norms;
    let y = normed(b, cx, norms.pre_attention, x, "attn_norm")?;
    let y = mix(b, cx, sublayers.mixer, y)?;
    let y = post_normed(b, cx, norms.post_attention, y, "attn_post_norm")?;
    let y = scaled(b, cx, y)?;
    let x = b.add(y, x, "ffn_inp")?;
    let y = normed(b, cx, norms.pre_ffn, x, "ffn_norm")?;
    let y = ffn::ffn(b, cx, sublayers.ffn, y)?;
    let y = post_normed(b, cx, norms.post_ffn, y, "ffn_post_norm")?;
    let y = scaled(b, cx, y)?;
    b.add(y, x, "l_out")
}

/// Sublayers read mixtures of the residual stream and of those that layers kept.
fn attended(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    sublayers: Sublayers<'_>,
    period: u64,
    x: Value,
) -> Result<Value, ArchError> {
    let norms = &cx.model.arch.norms;
    let input = residual::mixed(b, &cx.model, "attn_res_score", x)?;
    let keeps = u64::from(cx.layer.index).is_multiple_of(period);
    if keeps {
        residual::keep(b, &cx.model, x)?;
    }
    let y = normed(b, cx, norms.pre_attention, input, "attn_norm")?;
    let y = mix(b, cx, sublayers.mixer, y)?;
    let x = if keeps { y } else { b.add(x, y, "ffn_inp")? };
    let input = residual::mixed(b, &cx.model, "ffn_res_score", x)?;
    let y = normed(b, cx, norms.pre_ffn, input, "ffn_norm")?;
    let y = ffn::ffn(b, cx, sublayers.ffn, y)?;
    b.add(x, y, "l_out")
}

/// The output of each sublayer is added to its normalised input.
fn from_norms(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    sublayers: Sublayers<'_>,
    x: Value,
) -> Result<Value, ArchError> {
    let norms = &cx.model.arch.norms;
    let input = normed(b, cx, norms.pre_attention, x, "attn_norm")?;
    let y = mix(b, cx, sublayers.mixer, input)?;
    let kept = scaled(b, cx, input)?;
    let x = b.add(y, kept, "ffn_inp")?;
    let input = normed(b, cx, norms.pre_ffn, x, "ffn_norm")?;
    let y = ffn::ffn(b, cx, sublayers.ffn, input)?;
    let kept = scaled(b, cx, input)?;
    b.add(y, kept, "l_out")
}

/// Both sublayers read the layer's input, and both outputs are added to it.
fn parallel(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    sublayers: Sublayers<'_>,
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
    let attn = mix(b, cx, sublayers.mixer, input)?;
    let attn = post_normed(b, cx, norms.post_attention, attn, "attn_post_norm")?;
    let attn = scaled(b, cx, attn)?;
    let input = match pre_ffn {
        Some(_) => normed(b, cx, pre_ffn, x, "ffn_norm")?,
        None => shared,
    };
    let y = ffn::ffn(b, cx, sublayers.ffn, input)?;
    let y = post_normed(b, cx, norms.post_ffn, y, "ffn_post_norm")?;
    let y = scaled(b, cx, y)?;
    let x = b.add(x, y, "ffn_inp")?;
    b.add(x, attn, "l_out")
}

/// The output of the token mixer.
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

/// The output of attention, by heads or with a latent vector.
fn attend(b: &mut Builder<'_>, cx: &LayerContext<'_>, x: Value) -> Result<Value, ArchError> {
    match &cx.model.hparams.latent {
        Some(hp) => latent::latent(b, cx, hp, x),
        None => attention::attention(b, cx, x),
    }
}

/// `x`, normalised by the weight of that tensor if the description has a norm here.
fn normed(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    tensor: Option<&str>,
    x: Value,
    name: &str,
) -> Result<Value, ArchError> {
    match tensor {
        Some(tensor) => norm::stream(b, &cx.model, tensor, x, name),
        None => Ok(x),
    }
}

/// As [`normed`], for the output of a sublayer.
fn post_normed(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    tensor: Option<&str>,
    x: Value,
    name: &str,
) -> Result<Value, ArchError> {
    match (tensor, cx.model.arch.norms.post_eps) {
        (Some(tensor), Some(eps)) => norm::with_eps(b, &cx.model, tensor, eps, x, name),
        _ => normed(b, cx, tensor, x, name),
    }
}

/// Whether the layer has the norm of that tensor.
fn has_norm(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    tensor: Option<&str>,
) -> Result<bool, ArchError> {
    let sizes = [cx.model.hparams.embd()];
    tensor.map_or(Ok(false), |tensor| {
        norm::exists(b, tensor, &sizes, Presence::Optional)
    })
}

/// The output of a sublayer as it is added to the residual stream.
fn scaled(b: &mut Builder<'_>, cx: &LayerContext<'_>, y: Value) -> Result<Value, ArchError> {
    match cx.model.hparams.residual_scale {
        Some(scale) => b.scale(y, scale, "residual_scaled"),
        None => Ok(y),
    }
}
