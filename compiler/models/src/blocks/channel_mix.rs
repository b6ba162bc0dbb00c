//! RWKV's feed-forward network, which reads mixtures of each token and the previous one.

use tpc_ir::Value;
use tpc_ir::op::UnaryKind;

use super::builder::Builder;
use super::context::LayerContext;
use super::recurrent::token_shift;
use crate::description::ChannelMix;
use crate::error::ArchError;
use crate::hparams::FfnWidth;

/// Returns the network's output, `[n_embd, n_tokens]`.
pub(super) fn channel_mix(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    form: ChannelMix,
    width: FfnWidth,
    x: Value,
) -> Result<Value, ArchError> {
    let embd = cx.model.hparams.embd();
    let back = token_shift::step_back(b, cx, "cache_r_ffn", x)?;
    let xk = token_shift::mixed(b, cx, "channel_mix_lerp_k", [x, back], "ffn_xk")?;
    let gate = match form {
        ChannelMix::Plain => None,
        ChannelMix::Gated => {
            let xr = token_shift::mixed(b, cx, "channel_mix_lerp_r", [x, back], "ffn_xr")?;
            let r = b.project("channel_mix_receptance", xr, [embd, embd], "ffn_r")?;
            Some(b.unary(&[UnaryKind::Sigmoid], r, "ffn_r")?)
        }
    };
    let k = b.project("channel_mix_key", xk, [embd, width.n], "ffn_k")?;
    let k = b.unary(&[UnaryKind::Relu, UnaryKind::Sqr], k, "ffn_k")?;
    let y = b.project("channel_mix_value", k, [width.n, embd], "ffn_v")?;
    match gate {
        Some(gate) => b.mul(gate, y, "ffn_out"),
        None => Ok(y),
    }
}
