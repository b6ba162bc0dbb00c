//! Convolutions along time, per channel. The last steps of a batch are kept for the next one.

use tpc_ir::op::{Concat, Permute, Slice, SsmConv};
use tpc_ir::{Dim, Value};

use super::state;
use crate::blocks::LayerContext;
use crate::blocks::builder::Builder;
use crate::blocks::keys::Keys;
use crate::description::Presence;
use crate::error::ArchError;
use crate::source::{Size, TensorRole};

/// A convolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Conv {
    /// Stem of the tensors of taps and biases.
    pub(super) stem: &'static str,
    /// Steps of time that an output depends on.
    pub(super) taps: Size,
    pub(super) channels: Size,
    /// A bias per channel.
    pub(super) bias: Presence,
}

/// The number of taps: one alone would see no other token.
pub(super) fn taps(keys: &Keys<'_>, key: &'static str) -> Result<Size, ArchError> {
    match keys.require_count(key)? {
        n if n < 2 => Err(keys.out_of_range(key, n, "at least 2")),
        n => Ok(Size { n, from: key }),
    }
}

impl Conv {
    /// Convolves `x: [channels, n_tokens]`.
    pub(super) fn apply(
        &self,
        b: &mut Builder<'_>,
        cx: &LayerContext<'_>,
        x: Value,
    ) -> Result<Value, ArchError> {
        const NAME: &str = "conv_input";
        let [n_t, n_s] = state::tokens();
        let (channels, earlier): (Dim, Dim) = (self.channels.n.into(), (self.taps.n - 1).into());
        let size = (self.taps.n - 1) * self.channels.n;
        let (kept, before) = state::read(b, cx, "cache_r", size)?;
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
        let taps = b.tensor_name(self.stem, "weight");
        let taps = b.required(&taps, &[self.taps, self.channels], TensorRole::Taps)?;
        let y = b.push(SsmConv, vec![steps, taps], "conv_output")?;
        let y = b.reshape(y, [channels, b.n_tokens()], "conv_output")?;
        b.biased(self.stem, y, self.channels, self.bias, "conv_output")
    }
}
