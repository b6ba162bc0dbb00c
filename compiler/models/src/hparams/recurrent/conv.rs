use crate::description::Presence;
use crate::error::ArchError;
use crate::hparams::keys::Keys;
use crate::size::Size;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ConvHParams {
    /// Name of the tensors of taps and biases, without `weight` or `bias`.
    pub(crate) tensor: &'static str,
    /// Number of steps that an output depends on.
    pub(crate) taps: Size,
    pub(crate) channels: Size,
    /// Bias per channel.
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

/// State of a layer's only convolution.
pub(super) const ONLY_STATE: &str = "cache_r";

/// Returns the number of taps, at least 2: a single tap sees only its own token.
pub(super) fn taps(keys: &Keys<'_>, key: &'static str) -> Result<Size, ArchError> {
    match keys.require_count(key)? {
        n if n < 2 => Err(keys.out_of_range(key, n, "at least 2")),
        n => Ok(Size::new(n, key)),
    }
}
