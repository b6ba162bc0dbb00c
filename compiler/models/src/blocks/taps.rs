//! Mixtures of the inputs of earlier layers.

use tpc_ir::op::UnaryKind;
use tpc_ir::{Dim, Value};

use super::builder::Builder;
use super::context::LayerContext;
use super::norm;
use crate::description::Presence;
use crate::error::ArchError;
use crate::size::Size;
use crate::source::TensorRole;

/// Returns attention's input and the residual stream for a layer's input `x: [n_embd, n_tokens]`. Both are `x` in a
/// layer without taps.
pub(super) fn mix(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    x: Value,
) -> Result<[Value; 2], ArchError> {
    let Some(hp) = &cx.model.hparams.residual.taps else {
        return Ok([x, x]);
    };
    b.note_input(x);
    let Some(taps) = hp.of_layer(cx.layer.index) else {
        return Ok([x, x]);
    };
    let embd = cx.model.hparams.embd();
    let w = norm::without_weight(b, &cx.model, x, "mudd_norm")?;
    let w = b.project("mudd_down", w, [embd, hp.width], "mudd_down")?;
    let w = b.unary(&[UnaryKind::GeluErf], w, "mudd_act")?;
    let sizes = [
        hp.width,
        Size::product(2, hp.count.n, "2 × mudd.tap_count")?,
    ];
    let (bias, role) = (Presence::Required, TensorRole::Matrix);
    let w = b.linear("mudd_up", w, sizes, bias, role, "mudd_w")?;
    let inputs: Vec<Value> = taps.iter().map(|&layer| b.input_of(layer)).collect();
    let input = sum(b, w, 0, &inputs, "mudd_attn")?;
    let stream = sum(b, w, hp.count.n, &inputs, "mudd_resid")?;
    Ok([input, stream])
}

/// Returns the sum of the inputs, weighted by consecutive rows of `w` from `first` on.
fn sum(
    b: &mut Builder<'_>,
    w: Value,
    first: u64,
    inputs: &[Value],
    name: &str,
) -> Result<Value, ArchError> {
    let mut sum: Option<Value> = None;
    for (row, &x) in (first..).zip(inputs) {
        let weight = b.slice(w, 0, row, Dim::ONE, "mudd_weight")?;
        let term = b.mul(x, weight, name)?;
        sum = Some(match sum {
            None => term,
            Some(before) => b.add(before, term, name)?,
        });
    }
    Ok(sum.expect("invariant: a layer has as many taps as a count above 0"))
}
