use tpc_ir::Value;

use super::builder::Builder;
use super::context::LayerContext;
use super::ffn;
use super::ffn_input::FfnInput;
use super::residual_sum::{self, Sublayer};
use super::{
    attention, compressed, hyper, latent, ngrams, norm, per_layer, post_norm, recurrent, residual,
    taps,
};
use crate::description::{Presence, Sublayers};
use crate::error::ArchError;
use crate::hparams::{HyperHParams, Join, LayerFfn, Mixer};
use crate::size::Size;
use crate::source::TensorRole;

#[derive(Clone, Copy, Default)]
pub(crate) struct LayerInputs {
    pub(crate) per_layer: Option<Value>,
    pub(crate) first: Option<Value>,
}

/// Returns a layer's output, `[n_embd, n_tokens]`, for the input `x` of the same shape.
pub(crate) fn layer(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    beside: LayerInputs,
    x: Value,
) -> Result<Value, ArchError> {
    for tensor in cx.model.arch.of_images {
        b.ignore(&b.bare_name(tensor));
    }
    let (Some(mixer), Some(ffn)) = (cx.layer.mixer, &cx.layer.ffn) else {
        return single(b, cx, x);
    };
    let sublayers = SublayerPair { mixer, ffn };
    let pre_ffn = cx.model.arch.norms.pre_ffn;
    let x = match cx.model.hparams.residual.join {
        Join::Sequential => sequential(b, cx, sublayers, x)?,
        Join::FromNorms => from_norms(b, cx, sublayers, x)?,
        Join::Normalised => normalised(b, cx, sublayers, x)?,
        Join::AttentionResiduals { period } => attention_residual(b, cx, sublayers, period, x)?,
        Join::Hyper(hp) => side_by_side(b, cx, sublayers, &hp, x)?,
        Join::Parallel => parallel(b, cx, sublayers, pre_ffn, x)?,
        Join::ByFfnNorm if has_norm(b, cx, pre_ffn)? => sequential(b, cx, sublayers, x)?,
        Join::ByFfnNorm => parallel(b, cx, sublayers, None, x)?,
    };
    let x = match beside.per_layer {
        Some(all) => per_layer::add(b, cx, all, x)?,
        None => x,
    };
    let x = match beside.first {
        Some(first) => skip(b, cx, first, x)?,
        None => x,
    };
    let x = match output_scale(b, cx.model.arch.layer_scale)? {
        Some(scale) => b.mul(x, scale, "l_out_scaled")?,
        None => x,
    };
    match cx.model.hparams.residual.halved_every {
        Some(n) if u64::from(cx.layer.index + 1).is_multiple_of(n) => b.scale(x, 0.5, "l_out_half"),
        _ => Ok(x),
    }
}

/// Adds the scaled input of the first layer, if the layer has the factor.
fn skip(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    first: Value,
    x: Value,
) -> Result<Value, ArchError> {
    let Some(scale) = output_scale(b, cx.model.arch.embedding_skip)? else {
        return Ok(x);
    };
    let skip = b.mul(first, scale, "embd_skip")?;
    b.add(x, skip, "l_out_skip")
}

fn output_scale(b: &mut Builder<'_>, presence: Presence) -> Result<Option<Value>, ArchError> {
    let scale = b.tensor_name("layer_output_scale", "weight");
    let one = Size::new(1, "one number");
    b.optional(&scale, &[one], TensorRole::Scale, presence)
}

#[derive(Clone, Copy)]
struct SublayerPair<'a> {
    mixer: Mixer,
    ffn: &'a LayerFfn,
}

fn single(b: &mut Builder<'_>, cx: &LayerContext<'_>, x: Value) -> Result<Value, ArchError> {
    let norms = &cx.model.arch.norms;
    let norm = match (cx.model.arch.sublayers, &cx.layer.ffn) {
        (Sublayers::ByCounts, None) => return Ok(x),
        (Sublayers::ByCounts, Some(_)) => norms.pre_ffn,
        (Sublayers::Both | Sublayers::Mixer | Sublayers::Either, _) => norms.pre_attention,
    };
    let y = normalise(b, cx, norm, x, "attn_norm")?;
    let y = match (cx.layer.mixer, &cx.layer.ffn) {
        (Some(mixer), _) => mix(b, cx, mixer, y)?,
        (None, Some(form)) => {
            let (stream, layer) = (x, x);
            let input = FfnInput {
                x: y,
                stream,
                layer,
            };
            ffn::ffn(b, cx, form, input)?
        }
        (None, None) => return Ok(x),
    };
    let y = scale_residual(b, cx, y)?;
    b.add(y, x, "l_out")
}

/// Appends a layer whose feed-forward sublayer reads the sum of the layer's input and the mixer's output.
fn sequential(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    sublayers: SublayerPair<'_>,
    x: Value,
) -> Result<Value, ArchError> {
    if cx.model.hparams.residual.swin {
        return after_sublayers(b, cx, sublayers, x);
    }
    let norms = &cx.model.arch.norms;
    let layer = x;
    let [input, x] = taps::mix(b, cx, x)?;
    let optional = norms.first_optional && cx.layer.index == 0;
    let y = if optional && !has_norm(b, cx, norms.pre_attention)? {
        input
    } else {
        normalise(b, cx, norms.pre_attention, input, "attn_norm")?
    };
    let y = mix(b, cx, sublayers.mixer, y)?;
    let y = post_norm::mixed(b, cx, y)?;
    let y = scale_residual(b, cx, y)?;
    let x = residual_sum::add(b, cx, Sublayer::Mixer, [x, y], "ffn_inp")?;
    let y = normalise(b, cx, norms.pre_ffn, x, "ffn_norm")?;
    let stream = x;
    let input = FfnInput {
        x: y,
        stream,
        layer,
    };
    let y = ffn::ffn(b, cx, sublayers.ffn, input)?;
    let y = post_norm::fed(b, cx, y)?;
    let y = scale_residual(b, cx, y)?;
    residual_sum::add(b, cx, Sublayer::Ffn, [x, y], "l_out")
}

/// Appends a layer whose norms normalise the sublayers' outputs. The feed-forward network reads attention's output.
fn after_sublayers(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    sublayers: SublayerPair<'_>,
    x: Value,
) -> Result<Value, ArchError> {
    let norms = &cx.model.arch.norms;
    let layer = x;
    let y = mix(b, cx, sublayers.mixer, x)?;
    let y = normalise(b, cx, norms.pre_attention, y, "attn_norm")?;
    let x = b.add(y, x, "ffn_inp")?;
    let input = FfnInput {
        x: y,
        stream: x,
        layer,
    };
    let y = ffn::ffn(b, cx, sublayers.ffn, input)?;
    let y = normalise(b, cx, norms.pre_ffn, y, "ffn_norm")?;
    b.add(y, x, "l_out")
}

/// Appends a layer that normalises the sums of its sublayers' inputs and outputs.
fn normalised(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    sublayers: SublayerPair<'_>,
    x: Value,
) -> Result<Value, ArchError> {
    let norms = &cx.model.arch.norms;
    let layer = x;
    let y = mix(b, cx, sublayers.mixer, x)?;
    let y = scale_residual(b, cx, y)?;
    let y = b.add(y, x, "attn_sum")?;
    let mut x = normalise(b, cx, norms.post_attention, y, "attn_out_norm")?;
    if has_norm(b, cx, norms.again_attention)? {
        let y = b.add(x, layer, "attn_sum_2")?;
        x = normalise(b, cx, norms.again_attention, y, "attn_norm_2")?;
    }
    let stream = x;
    let y = ffn::ffn(b, cx, sublayers.ffn, FfnInput { x, stream, layer })?;
    let y = scale_residual(b, cx, y)?;
    let y = b.add(y, x, "ffn_sum")?;
    normalise(b, cx, norms.post_ffn, y, "l_out")
}

/// Appends a layer whose sublayers read mixtures of the residual stream and kept streams.
fn attention_residual(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    sublayers: SublayerPair<'_>,
    period: u64,
    x: Value,
) -> Result<Value, ArchError> {
    let norms = &cx.model.arch.norms;
    let input = residual::mix_streams(b, &cx.model, "attn_res_score", x)?;
    let keeps = u64::from(cx.layer.index).is_multiple_of(period);
    if keeps {
        residual::keep(b, &cx.model, x)?;
    }
    let y = normalise(b, cx, norms.pre_attention, input, "attn_norm")?;
    let y = mix(b, cx, sublayers.mixer, y)?;
    let x = if keeps { y } else { b.add(x, y, "ffn_inp")? };
    let stream = residual::mix_streams(b, &cx.model, "ffn_res_score", x)?;
    let y = normalise(b, cx, norms.pre_ffn, stream, "ffn_norm")?;
    let input = FfnInput {
        x: y,
        stream,
        layer: stream,
    };
    let y = ffn::ffn(b, cx, sublayers.ffn, input)?;
    b.add(x, y, "l_out")
}

/// Appends a layer whose sublayers read sums of parallel residual streams, `x: [n_embd, streams, n_tokens]`.
fn side_by_side(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    sublayers: SublayerPair<'_>,
    hp: &HyperHParams,
    x: Value,
) -> Result<Value, ArchError> {
    let norms = &cx.model.arch.norms;
    let x = ngrams::add(b, cx, hp, x)?;
    let joint = hyper::read(b, &cx.model, hp, "hc_attn", x)?;
    let y = normalise(b, cx, norms.pre_attention, joint.input, "attn_norm")?;
    let y = mix(b, cx, sublayers.mixer, y)?;
    let x = hyper::write(b, &cx.model, hp, &joint, [x, y])?;
    let joint = hyper::read(b, &cx.model, hp, "hc_ffn", x)?;
    let y = normalise(b, cx, norms.pre_ffn, joint.input, "ffn_norm")?;
    let input = FfnInput {
        x: y,
        stream: joint.input,
        layer: joint.input,
    };
    let y = ffn::ffn(b, cx, sublayers.ffn, input)?;
    hyper::write(b, &cx.model, hp, &joint, [x, y])
}

/// Appends a layer that adds each sublayer's output to the sublayer's normalised input.
fn from_norms(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    sublayers: SublayerPair<'_>,
    x: Value,
) -> Result<Value, ArchError> {
    let norms = &cx.model.arch.norms;
    let input = normalise(b, cx, norms.pre_attention, x, "attn_norm")?;
    let y = mix(b, cx, sublayers.mixer, input)?;
    let kept = scale_residual(b, cx, input)?;
    let layer = x;
    let stream = b.add(y, kept, "ffn_inp")?;
    let input = normalise(b, cx, norms.pre_ffn, stream, "ffn_norm")?;
    let all = FfnInput {
        x: input,
        stream,
        layer,
    };
    let y = ffn::ffn(b, cx, sublayers.ffn, all)?;
    let kept = scale_residual(b, cx, input)?;
    b.add(y, kept, "l_out")
}

/// Appends a layer whose sublayers both read the layer's input. Adds both outputs to this input.
fn parallel(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    sublayers: SublayerPair<'_>,
    pre_ffn: Option<&str>,
    x: Value,
) -> Result<Value, ArchError> {
    let norms = &cx.model.arch.norms;
    let shared = normalise(b, cx, norms.pre_attention, x, "attn_norm")?;
    let input = if has_norm(b, cx, norms.own_attention)? {
        normalise(b, cx, norms.own_attention, x, "attn_norm_2")?
    } else {
        shared
    };
    let attn = mix(b, cx, sublayers.mixer, input)?;
    let attn = post_norm::mixed(b, cx, attn)?;
    let attn = scale_residual(b, cx, attn)?;
    let input = match pre_ffn {
        Some(_) => normalise(b, cx, pre_ffn, x, "ffn_norm")?,
        None => shared,
    };
    let input = FfnInput {
        x: input,
        stream: x,
        layer: x,
    };
    let y = ffn::ffn(b, cx, sublayers.ffn, input)?;
    let y = post_norm::fed(b, cx, y)?;
    let y = scale_residual(b, cx, y)?;
    let x = b.add(x, y, "ffn_inp")?;
    b.add(x, attn, "l_out")
}

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
        (Mixer::Matrix, _) => {
            let embd = cx.model.hparams.embd();
            let (sizes, role) = ([embd, embd], TensorRole::Matrix);
            b.linear("attn_output", x, sizes, Presence::Absent, role, "attn_out")
        }
        (Mixer::Attention | Mixer::Recurrent | Mixer::Both, _) => attend(b, cx, x),
    }
}

fn attend(b: &mut Builder<'_>, cx: &LayerContext<'_>, x: Value) -> Result<Value, ArchError> {
    if let Some(hp) = &cx.model.hparams.attention.compressed {
        return compressed::compressed_attention(b, cx, hp, x);
    }
    match &cx.model.hparams.attention.latent {
        Some(by_reach) => latent::latent(b, cx, cx.layer.reach.select(by_reach.each_ref()), x),
        None => attention::attention(b, cx, x),
    }
}

/// Normalises `x` with this tensor's weight, if the description has the norm.
fn normalise(
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

fn has_norm(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    tensor: Option<&str>,
) -> Result<bool, ArchError> {
    let sizes = [cx.model.hparams.embd()];
    tensor.map_or(Ok(false), |tensor| {
        norm::exists(b, &cx.model, tensor, &sizes, Presence::Optional)
    })
}

fn scale_residual(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    y: Value,
) -> Result<Value, ArchError> {
    match cx.model.hparams.residual.scale {
        Some(scale) => b.scale(y, scale, "residual_scaled"),
        None => Ok(y),
    }
}
