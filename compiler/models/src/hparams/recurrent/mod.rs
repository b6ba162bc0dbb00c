//! The sizes of recurrent mixers.

mod conv;
mod delta_net;
mod short_conv;
mod ssm;

use super::keys::Keys;
use crate::description::RecurrentMixer;
use crate::error::ArchError;
use crate::size::Size;

pub(crate) use conv::ConvHParams;
pub(crate) use delta_net::DeltaNetHParams;
pub(crate) use short_conv::ShortConvHParams;
pub(crate) use ssm::SsmHParams;

/// The sizes of a model's recurrent mixers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum RecurrentHParams {
    Mamba2(SsmHParams),
    DeltaNet(DeltaNetHParams),
    ShortConv(ShortConvHParams),
}

impl RecurrentHParams {
    /// Reads the sizes of mixers of this kind.
    pub(super) fn read(
        keys: &Keys<'_>,
        mixer: RecurrentMixer,
        embd: Size,
    ) -> Result<RecurrentHParams, ArchError> {
        Ok(match mixer {
            RecurrentMixer::Mamba2 => RecurrentHParams::Mamba2(SsmHParams::read(keys)?),
            RecurrentMixer::DeltaNet(form) => {
                RecurrentHParams::DeltaNet(DeltaNetHParams::read(keys, form)?)
            }
            RecurrentMixer::ShortConv => {
                RecurrentHParams::ShortConv(ShortConvHParams::read(keys, embd)?)
            }
        })
    }
}
