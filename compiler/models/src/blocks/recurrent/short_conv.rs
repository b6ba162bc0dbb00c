//! The gated short convolution of LFM2. One part of the projected input gates the convolution's input, another its
//! output.

use tpc_ir::Value;

use super::conv;
use crate::blocks::builder::Builder;
use crate::blocks::context::LayerContext;
use crate::error::ArchError;
use crate::hparams::ShortConvHParams;

pub(super) fn short_conv(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    hp: &ShortConvHParams,
    x: Value,
) -> Result<Value, ArchError> {
    let linear = |b: &mut Builder<'_>, tensor, x, sizes, name| b.project(tensor, x, sizes, name);
    let embd = hp.conv.channels;
    let sizes = [embd, hp.projected];
    let y = linear(b, "shortconv.in_proj", x, sizes, "conv_in_proj")?;
    let part = |b: &mut Builder<'_>, i, name| b.slice(y, 0, i * embd.n, embd.n.into(), name);
    let gate = part(b, 0, "conv_gate")?;
    let out_gate = part(b, 1, "conv_out_gate")?;
    let x = part(b, 2, "conv_x")?;
    let x = b.mul(gate, x, "conv_gated")?;
    let y = conv::apply(b, cx, &hp.conv, x)?;
    let y = b.mul(out_gate, y, "conv_out_gated")?;
    linear(b, "shortconv.out_proj", y, [embd, embd], "conv_out")
}
