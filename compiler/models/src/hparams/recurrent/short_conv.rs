use super::conv::{self, ConvHParams, TapsShape};
use crate::description::Presence;
use crate::error::ArchError;
use crate::hparams::keys::Keys;
use crate::size::Size;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ShortConvHParams {
    pub(crate) conv: ConvHParams,
    /// Rows of the input projection: input gate, output gate, input.
    pub(crate) projected: Size,
}

impl ShortConvHParams {
    pub(super) fn read(keys: &Keys<'_>, embd: Size) -> Result<ShortConvHParams, ArchError> {
        Ok(ShortConvHParams {
            conv: ConvHParams {
                tensor: "shortconv.conv",
                taps: conv::taps(keys, "shortconv.l_cache")?,
                channels: embd,
                bias: Presence::Absent,
                shape: TapsShape::Matrix,
                state: conv::ONLY_STATE,
            },
            projected: Size::product(3, embd.n, "3 × embedding_length")?,
        })
    }
}
