//! The gated short convolution of LFM2: one part of the projected input gates what is convolved, another the result.

use tpc_ir::Value;

use super::conv::{self, Conv};
use crate::blocks::LayerContext;
use crate::blocks::builder::Builder;
use crate::blocks::hparams::width;
use crate::blocks::keys::Keys;
use crate::description::Presence;
use crate::error::ArchError;
use crate::source::{Size, TensorRole};

/// Its sizes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ShortConvHParams {
    conv: Conv,
    /// Width of the gate of what is convolved, that of the result, and what is convolved, together.
    projected: Size,
}

/// Reads its sizes.
pub(super) fn read(keys: &Keys<'_>, embd: Size) -> Result<ShortConvHParams, ArchError> {
    Ok(ShortConvHParams {
        conv: Conv {
            stem: "shortconv.conv",
            taps: conv::taps(keys, "shortconv.l_cache")?,
            channels: embd,
            bias: Presence::Absent,
        },
        projected: width(3, embd.n, "3 × embedding_length")?,
    })
}

/// What the layer adds to the residual stream: `[n_embd, n_tokens]`.
pub(super) fn short_conv(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    hp: &ShortConvHParams,
    x: Value,
) -> Result<Value, ArchError> {
    let linear = |b: &mut Builder<'_>, stem, x, sizes, name| {
        b.linear(stem, x, sizes, Presence::Absent, TensorRole::Matrix, name)
    };
    let embd = hp.conv.channels;
    let sizes = [embd, hp.projected];
    let y = linear(b, "shortconv.in_proj", x, sizes, "conv_in_proj")?;
    let part = |b: &mut Builder<'_>, i, name| b.slice(y, 0, i * embd.n, embd.n.into(), name);
    let gate = part(b, 0, "conv_gate")?;
    let out_gate = part(b, 1, "conv_out_gate")?;
    let x = part(b, 2, "conv_x")?;
    let x = b.mul(gate, x, "conv_gated")?;
    let y = hp.conv.apply(b, cx, x)?;
    let y = b.mul(out_gate, y, "conv_out_gated")?;
    linear(b, "shortconv.out_proj", y, [embd, embd], "conv_out")
}
