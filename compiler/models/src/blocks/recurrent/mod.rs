//! Recurrent mixers: what they compute, and what they keep of a sequence.

mod conv;
mod delta_net;
mod short_conv;
mod ssm;
mod state;

use tpc_ir::Value;

use super::LayerContext;
use super::builder::Builder;
use super::keys::Keys;
use crate::description::RecurrentMixer;
use crate::error::ArchError;
use crate::source::Size;

/// The sizes of a model's recurrent mixers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum RecurrentHParams {
    Mamba2(ssm::SsmHParams),
    DeltaNet(delta_net::DeltaNetHParams),
    ShortConv(short_conv::ShortConvHParams),
}

/// The sizes that the metadata give.
pub(super) fn read(
    keys: &Keys<'_>,
    mixer: RecurrentMixer,
    embd: Size,
) -> Result<RecurrentHParams, ArchError> {
    Ok(match mixer {
        RecurrentMixer::Mamba2 => RecurrentHParams::Mamba2(ssm::read(keys)?),
        RecurrentMixer::DeltaNet(form) => RecurrentHParams::DeltaNet(delta_net::read(keys, form)?),
        RecurrentMixer::ShortConv => RecurrentHParams::ShortConv(short_conv::read(keys, embd)?),
    })
}

/// What a recurrent mixer adds to the residual stream: `[n_embd, n_tokens]`.
pub(crate) fn recurrent(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    hp: &RecurrentHParams,
    x: Value,
) -> Result<Value, ArchError> {
    match hp {
        RecurrentHParams::Mamba2(hp) => ssm::ssm(b, cx, hp, x),
        RecurrentHParams::DeltaNet(hp) => delta_net::delta_net(b, cx, hp, x),
        RecurrentHParams::ShortConv(hp) => short_conv::short_conv(b, cx, hp, x),
    }
}
