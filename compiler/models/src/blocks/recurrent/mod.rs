pub(super) mod conv;
mod delta_net;
mod delta_rule;
mod kda;
mod lightning;
mod mamba1;
mod rwkv6;
mod rwkv7;
mod scan;
mod short_conv;
mod ssm;
mod state;
pub(super) mod token_shift;
mod wkv;

use tpc_ir::Value;

use super::builder::Builder;
use super::context::LayerContext;
use crate::error::ArchError;
use crate::hparams::RecurrentHParams;

pub(crate) fn recurrent(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    hp: &RecurrentHParams,
    x: Value,
) -> Result<Value, ArchError> {
    match hp {
        RecurrentHParams::Kda(hp) => kda::kda(b, cx, hp, x),
        RecurrentHParams::Lightning(hp) => lightning::lightning(b, cx, hp, x),
        RecurrentHParams::Mamba1(hp) => mamba1::mamba1(b, cx, hp, x),
        RecurrentHParams::Mamba2(hp) => ssm::ssm(b, cx, hp, x),
        RecurrentHParams::DeltaNet(hp) => delta_net::delta_net(b, cx, hp, x),
        RecurrentHParams::Rwkv6(hp) => rwkv6::rwkv6(b, cx, hp, x),
        RecurrentHParams::Rwkv7(hp) => rwkv7::rwkv7(b, cx, hp, x),
        RecurrentHParams::ShortConv(hp) => short_conv::short_conv(b, cx, hp, x),
    }
}
