//! Sizes of convolutions along time.

use crate::description::Presence;
use crate::error::ArchError;
use crate::hparams::keys::Keys;
use crate::size::Size;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ConvHParams {
    /// The tensors of taps and biases, without `weight` or `bias`.
    pub(crate) tensor: &'static str,
    /// Steps that an output depends on.
    pub(crate) taps: Size,
    pub(crate) channels: Size,
    /// A bias per channel.
    pub(crate) bias: Presence,
    pub(crate) shape: TapsShape,
    pub(crate) state: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TapsShape {
    /// `[taps, channels]`
    Matrix,
    /// `[taps, 1, channels]`
    Separate,
}

/// The state of a layer's only convolution.
pub(super) const ONLY_STATE: &str = "cache_r";

/// Returns the taps: at least 2, because one alone sees no other token.
pub(super) fn taps(keys: &Keys<'_>, key: &'static str) -> Result<Size, ArchError> {
    match keys.require_count(key)? {
        n if n < 2 => Err(keys.out_of_range(key, n, "at least 2")),
        n => Ok(Size::new(n, key)),
    }
}
