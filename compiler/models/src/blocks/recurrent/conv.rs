//! Convolutions along time, per channel. A state holds the last steps of a batch for the next one.

use tpc_ir::op::{Concat, Permute, Slice, SsmConv};
use tpc_ir::{Dim, Value};

use super::state;
use crate::blocks::builder::Builder;
use crate::blocks::context::LayerContext;
use crate::error::ArchError;
use crate::hparams::{ConvHParams, TapsShape};
use crate::size::Size;
use crate::source::TensorRole;

/// The convolution of `x: [channels, n_tokens]`, of the same shape.
pub(super) fn apply(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    conv: &ConvHParams,
    x: Value,
) -> Result<Value, ArchError> {
    const NAME: &str = "conv_input";
    let [n_t, n_s] = state::tokens();
    let (channels, earlier): (Dim, Dim) = (conv.channels.n.into(), (conv.taps.n - 1).into());
    let size = (conv.taps.n - 1) * conv.channels.n;
    let (kept, before) = state::read(b, cx, conv.state, size)?;
    let dims = [earlier.clone(), channels.clone(), n_s.clone()];
    let before = b.reshape(before, dims, "conv_states")?;
    let x = b.reshape(x, [channels.clone(), n_t.clone(), n_s], NAME)?;
    let axes = [1, 0, 2, 3];
    let x = b.push(Permute { axes }, vec![x], NAME)?;
    let steps = b.push(Concat { axis: 0 }, vec![before, x], NAME)?;
    let last = Slice {
        axis: 0,
        start: n_t,
        len: earlier,
    };
    let last = b.push(last, vec![steps], "conv_states_updated")?;
    kept.write(b, last)?;
    let taps = b.tensor_name(conv.tensor, "weight");
    let taps = match conv.shape {
        TapsShape::Matrix => b.required(&taps, &[conv.taps, conv.channels], TensorRole::Taps)?,
        TapsShape::Apart => {
            let one = Size::new(1, "one input per channel");
            let sizes = [conv.taps, one, conv.channels];
            let taps = b.required(&taps, &sizes, TensorRole::Taps)?;
            b.reshape(taps, [conv.taps.n.into(), channels.clone()], "conv_taps")?
        }
    };
    let y = b.push(SsmConv, vec![steps, taps], "conv_output")?;
    let y = b.reshape(y, [channels, b.n_tokens()], "conv_output")?;
    b.biased(conv.tensor, y, conv.channels, conv.bias, "conv_output")
}
