mod conv;
mod delta_net;
mod grouped;
mod kda;
mod lightning;
mod mamba1;
mod rwkv;
mod short_conv;
mod ssm;

use super::keys::Keys;
use crate::description::RecurrentMixer;
use crate::error::ArchError;
use crate::size::Size;

pub(crate) use conv::{ConvHParams, TapsShape};
pub(crate) use delta_net::DeltaNetHParams;
pub(crate) use kda::KdaHParams;
pub(crate) use lightning::LightningHParams;
pub(crate) use mamba1::Mamba1HParams;
pub(crate) use rwkv::{MIXES, Rwkv6HParams, Rwkv7HParams, WkvHeads};
pub(crate) use short_conv::ShortConvHParams;
pub(crate) use ssm::SsmHParams;

/// Attention heads, which some recurrent mixers share.
#[derive(Clone, Copy)]
pub(super) struct Heads {
    /// Number of heads in the first layer.
    pub(super) count: u64,
    pub(super) dim: u64,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum RecurrentHParams {
    Kda(KdaHParams),
    Lightning(LightningHParams),
    Mamba1(Mamba1HParams),
    Mamba2(SsmHParams),
    DeltaNet(DeltaNetHParams),
    Rwkv6(Rwkv6HParams),
    Rwkv7(Rwkv7HParams),
    ShortConv(ShortConvHParams),
}

impl RecurrentHParams {
    pub(super) fn read(
        keys: &Keys<'_>,
        mixer: RecurrentMixer,
        embd: Size,
        attention: Heads,
    ) -> Result<RecurrentHParams, ArchError> {
        Ok(match mixer {
            RecurrentMixer::Mamba1(form) => {
                RecurrentHParams::Mamba1(Mamba1HParams::read(keys, form, embd)?)
            }
            RecurrentMixer::Mamba2 => RecurrentHParams::Mamba2(SsmHParams::read(keys)?),
            RecurrentMixer::DeltaNet(form) => {
                RecurrentHParams::DeltaNet(DeltaNetHParams::read(keys, form)?)
            }
            RecurrentMixer::Kda(form) => {
                RecurrentHParams::Kda(KdaHParams::read(keys, form, attention.count)?)
            }
            RecurrentMixer::Lightning => {
                RecurrentHParams::Lightning(LightningHParams::read(keys, attention)?)
            }
            RecurrentMixer::Rwkv6(form) => {
                RecurrentHParams::Rwkv6(Rwkv6HParams::read(keys, form, embd)?)
            }
            RecurrentMixer::Rwkv7(form) => {
                RecurrentHParams::Rwkv7(Rwkv7HParams::read(keys, form, embd)?)
            }
            RecurrentMixer::ShortConv => {
                RecurrentHParams::ShortConv(ShortConvHParams::read(keys, embd)?)
            }
        })
    }
}
