//! Residual streams side by side.

use super::keys::Keys;
use crate::error::ArchError;
use crate::size::Size;

/// Residual streams side by side, as [`crate::description::Residual::Hyper`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct HyperHParams {
    pub(crate) streams: Size,
    /// Elements of all streams together.
    pub(crate) width: Size,
    /// Gates of a sublayer: two per stream.
    pub(crate) gates: Size,
    /// Added to gates.
    pub(crate) eps: f32,
    /// The largest gate on the output of a sublayer.
    pub(crate) magnitude: f32,
}

impl HyperHParams {
    pub(super) fn read(keys: &Keys<'_>) -> Result<HyperHParams, ArchError> {
        const COUNT: &str = "hyper_connection.count";
        let streams = keys.require_size(COUNT)?;
        let n_embd = keys.require_count("embedding_length")?;
        let width = "embedding_length × hyper_connection.count";
        Ok(HyperHParams {
            streams,
            width: Size::product(n_embd, streams.n, width)?,
            gates: Size::product(2, streams.n, "2 × hyper_connection.count")?,
            eps: keys.require_epsilon("hyper_connection.epsilon")?,
            magnitude: keys.require_above_0("hyper_connection.magnitude")?,
        })
    }
}
