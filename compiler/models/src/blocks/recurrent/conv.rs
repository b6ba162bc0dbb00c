//! Convolutions along time, per channel. A state keeps a batch's last steps for the next batch.

use tpc_ir::op::{Concat, Permute, Slice, SsmConv};
use tpc_ir::{Dim, Value};

use super::state;
pub(in crate::blocks) use super::state::tokens;
use crate::blocks::builder::Builder;
use crate::blocks::context::LayerContext;
use crate::error::ArchError;
use crate::hparams::{ConvHParams, TapsShape};
use crate::size::Size;
use crate::source::TensorRole;

/// Convolves `x: [channels, n_tokens]`. The result has the same shape.
pub(super) fn apply(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    conv: &ConvHParams,
    x: Value,
) -> Result<Value, ArchError> {
    let channels: Dim = conv.channels.n.into();
    let steps = window(b, cx, conv.state, [conv.taps.n - 1, conv.channels.n], x)?.all;
    let taps = b.tensor_name(conv.tensor, "weight");
    let taps = match conv.shape {
        TapsShape::Matrix => b.require(&taps, &[conv.taps, conv.channels], TensorRole::Taps)?,
        TapsShape::Separate => {
            let one = Size::new(1, "one input per channel");
            let sizes = [conv.taps, one, conv.channels];
            let taps = b.require(&taps, &sizes, TensorRole::Taps)?;
            b.reshape(taps, [conv.taps.n.into(), channels.clone()], "conv_taps")?
        }
    };
    let y = b.push(SsmConv, vec![steps, taps], "conv_output")?;
    let y = b.reshape(y, [channels, b.n_tokens()], "conv_output")?;
    b.add_bias(conv.tensor, y, conv.channels, conv.bias, "conv_output")
}

/// A batch's steps with earlier steps.
#[derive(Clone, Copy)]
pub(in crate::blocks) struct Window {
    /// All steps, `[earlier + n_seq_tokens, channels, n_seqs]`.
    pub(in crate::blocks) all: Value,
    /// Steps of the batch, `[n_seq_tokens, channels, n_seqs]`.
    own: Value,
    /// Number of earlier steps.
    earlier: u64,
}

/// Returns the steps of `x: [channels, n_tokens]` after `earlier` steps from a state. Steps before a sequence's start
/// are zero.
pub(in crate::blocks) fn window(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    state: &str,
    [earlier, channels]: [u64; 2],
    x: Value,
) -> Result<Window, ArchError> {
    const NAME: &str = "conv_input";
    let [n_t, n_s] = tokens();
    let (kept, before) = state::read(b, cx, state, earlier * channels)?;
    let dims = [earlier.into(), channels.into(), n_s.clone()];
    let before = b.reshape(before, dims, "conv_states")?;
    let x = b.reshape(x, [channels.into(), n_t.clone(), n_s], NAME)?;
    let axes = [1, 0, 2, 3];
    let x = b.push(Permute { axes }, vec![x], NAME)?;
    let steps = b.push(Concat { axis: 0 }, vec![before, x], NAME)?;
    let last = Slice {
        axis: 0,
        start: n_t,
        len: earlier.into(),
    };
    let last = b.push(last, vec![steps], "conv_states_updated")?;
    kept.write(b, last)?;
    Ok(Window {
        all: steps,
        own: x,
        earlier,
    })
}

/// Returns for each token the step at offset `from` in a [`window`], `[n_seq_tokens, channels, n_seqs]`.
pub(in crate::blocks) fn step(
    b: &mut Builder<'_>,
    steps: &Window,
    from: u64,
    name: &str,
) -> Result<Value, ArchError> {
    if from == steps.earlier {
        return Ok(steps.own);
    }
    let [n_t, _] = tokens();
    b.slice(steps.all, 0, from, n_t, name)
}

pub(in crate::blocks) fn as_step(
    b: &mut Builder<'_>,
    x: Value,
    channels: u64,
    name: &str,
) -> Result<Value, ArchError> {
    let [n_t, n_s] = tokens();
    b.reshape(x, [n_t, channels.into(), n_s], name)
}

/// Returns a [`step`] as `[channels, n_tokens]`.
pub(in crate::blocks) fn flat(
    b: &mut Builder<'_>,
    x: Value,
    channels: u64,
    name: &str,
) -> Result<Value, ArchError> {
    let axes = [1, 0, 2, 3];
    let x = b.push(Permute { axes }, vec![x], name)?;
    b.reshape(x, [channels.into(), b.n_tokens()], name)
}
