//! Norms of sublayers' outputs, before the residual sum.

use tpc_ir::Value;

use super::builder::Builder;
use super::context::LayerContext;
use super::norm;
use crate::description::{PostEps, Presence, WeightPlace};
use crate::error::ArchError;
use crate::source::Form;

#[derive(Clone, Copy)]
struct OutputNorm<'a> {
    tensor: &'a str,
    /// Norm of the layer's other sublayer.
    partner: Option<&'a str>,
    place: WeightPlace,
    name: &'a str,
}

/// Normalises the token mixer's output, if the description has this norm and the file has it.
pub(super) fn mixed(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    y: Value,
) -> Result<Value, ArchError> {
    const NAME: &str = "attn_post_norm";
    let norms = &cx.model.arch.norms;
    if norms.post_attention_plain {
        return norm::post(b, &cx.model, None, cx.model.hparams.embd(), y, NAME);
    }
    let Some(tensor) = norms.post_attention else {
        return Ok(y);
    };
    let form = OutputNorm {
        tensor,
        partner: norms.post_ffn,
        place: WeightPlace::Result,
        name: NAME,
    };
    normalise(b, cx, form, y)
}

/// Normalises the feed-forward output, if the description has this norm and the file has it.
pub(super) fn fed(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    y: Value,
) -> Result<Value, ArchError> {
    let norms = &cx.model.arch.norms;
    let Some(tensor) = tensor_of_fed(b, cx) else {
        return Ok(y);
    };
    let form = OutputNorm {
        tensor,
        partner: norms.post_attention,
        place: norms.post_ffn_weight,
        name: "ffn_post_norm",
    };
    normalise(b, cx, form, y)
}

fn tensor_of_fed(b: &Builder<'_>, cx: &LayerContext<'_>) -> Option<&'static str> {
    let norms = &cx.model.arch.norms;
    let other = norms.post_ffn_or.filter(|other| {
        let offered = b.offers(&b.tensor_name(other, "weight"), Form::Unusual);
        offered
            && !norms
                .post_ffn
                .is_some_and(|n| b.offers(&b.tensor_name(n, "weight"), Form::Usual))
    });
    other.or(norms.post_ffn)
}

fn normalise(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    form: OutputNorm<'_>,
    y: Value,
) -> Result<Value, ArchError> {
    let norms = &cx.model.arch.norms;
    let embd = cx.model.hparams.embd();
    if norms.post == Presence::Optional && !exists(b, cx, form)? {
        return Ok(y);
    }
    if norms.post_eps == PostEps::Model && form.place == WeightPlace::Result {
        return norm::stream(b, &cx.model, form.tensor, y, form.name);
    }
    let weight = Some((form.tensor, form.place));
    norm::post(b, &cx.model, weight, embd, y, form.name)
}

/// True if a layer has the optional norm. A layer with only one of its two norms is an error.
fn exists(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    form: OutputNorm<'_>,
) -> Result<bool, ArchError> {
    let sizes = [cx.model.hparams.embd()];
    let mut find = |tensor| norm::exists(b, &cx.model, tensor, &sizes, Presence::Optional);
    let here = find(form.tensor)?;
    let Some(partner) = form.partner else {
        return Ok(here);
    };
    let there = find(partner)?;
    if here == there {
        return Ok(here);
    }
    let [present, missing] = if here {
        [form.tensor, partner]
    } else {
        [partner, form.tensor]
    };
    Err(ArchError::MissingPartner {
        present: b.tensor_name(present, "weight"),
        missing: b.tensor_name(missing, "weight"),
    })
}
