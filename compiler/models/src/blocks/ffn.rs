use tpc_ir::Value;

use super::builder::Builder;
use super::context::LayerContext;
use super::ffn_input::FfnInput;
use super::{channel_mix, moe, network};
use crate::error::ArchError;
use crate::hparams::{ExpertWidths, LayerFfn};
use crate::source::Form;

/// Returns the sublayer's output, `[n_embd, n_tokens]`.
pub(crate) fn ffn(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    form: &LayerFfn,
    input: FfnInput,
) -> Result<Value, ArchError> {
    match form {
        LayerFfn::Dense(width) => match cx.model.arch.ffn.channel_mix {
            Some(form) => channel_mix::channel_mix(b, cx, form, *width, input.x),
            None => network::dense(b, cx, *width, input.x),
        },
        LayerFfn::Experts(widths) => experts(b, cx, widths, input),
        LayerFfn::ByRouter {
            dense: width,
            experts: widths,
        } => {
            let has = |tensor, form| b.offers(&b.tensor_name(tensor, "weight"), form);
            // If a file has neither, the error names the router.
            if has("ffn_gate_inp", Form::Usual) || !has(network::DENSE.up, Form::Unusual) {
                experts(b, cx, widths, input)
            } else {
                network::dense(b, cx, *width, input.x)
            }
        }
    }
}

fn experts(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    widths: &ExpertWidths,
    input: FfnInput,
) -> Result<Value, ArchError> {
    let form = cx.model.arch.ffn.experts.form();
    let form = form.expect("invariant: only an architecture with experts has layers with some");
    let hp = cx.model.hparams.ffn.experts.as_ref();
    let hp = hp.expect("invariant: only a model with experts has layers with some");
    moe::moe(b, cx, form, hp, widths, input)
}
