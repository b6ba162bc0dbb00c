//! The feed-forward half of a block.

use tpc_ir::Value;
use tpc_ir::op::{Binary, BinaryKind, Glu};

use super::LayerContext;
use super::builder::Builder;
use super::moe;
use crate::arch::description::Activation;
use crate::arch::error::ArchError;
use crate::arch::source::{Form, Size, TensorRole};

/// What the feed-forward half adds to the residual stream: `[n_embd, n_tokens]`.
pub(in crate::arch) fn ffn(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    x: Value,
) -> Result<Value, ArchError> {
    let form = &cx.model.arch.ffn;
    match (form.experts.form(), cx.model.hparams.experts) {
        (Some(experts), Some(counts)) => moe::moe(b, cx, experts, counts, x),
        _ => dense(b, cx, x),
    }
}

fn dense(b: &mut Builder<'_>, cx: &LayerContext<'_>, x: Value) -> Result<Value, ArchError> {
    let form = &cx.model.arch.ffn;
    let (embd, n_ff) = (cx.model.hparams.embd(), cx.layer.n_ff);
    let up = |b: &mut Builder<'_>, stem: &str, width: Size| {
        b.linear(stem, x, [embd, width], form.bias, TensorRole::Matrix, stem)
    };
    let gated = |b: &mut Builder<'_>, glu: &Glu| {
        let gate = up(b, "ffn_gate", n_ff)?;
        let up = up(b, "ffn_up", n_ff)?;
        b.push(glu.clone(), vec![gate, up], "ffn_act")
    };
    let y = match &form.activation {
        Activation::Gated(glu) => gated(b, glu)?,
        Activation::GatedFused(glu) => {
            if b.offers(&b.tensor_name("ffn_gate", "weight"), Form::Unusual) {
                gated(b, glu)?
            } else {
                let both = up(b, "ffn_up", cx.layer.gate_up_width)?;
                b.push(glu.clone(), vec![both], "ffn_act")?
            }
        }
        Activation::Plain(kinds) => {
            let y = up(b, "ffn_up", n_ff)?;
            let y = b.unary(kinds, y, "ffn_act")?;
            let scales = b.tensor_name("ffn.act", "scales");
            match b.optional(&scales, &[n_ff], TensorRole::Scale, form.act_scales)? {
                Some(scales) => {
                    let kind = BinaryKind::Div;
                    b.push(Binary { kind }, vec![y, scales], "ffn_act_scaled")?
                }
                None => y,
            }
        }
    };
    let sizes = [n_ff, embd];
    b.linear(
        "ffn_down",
        y,
        sizes,
        form.bias,
        TensorRole::Matrix,
        "ffn_out",
    )
}
