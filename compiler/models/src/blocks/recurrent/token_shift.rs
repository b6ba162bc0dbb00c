//! The step from each token to the previous one, which RWKV mixes into its inputs.

use tpc_ir::Value;
use tpc_ir::op::{Binary, BinaryKind};

use super::conv;
use crate::blocks::builder::Builder;
use crate::blocks::context::LayerContext;
use crate::error::ArchError;
use crate::size::Size;
use crate::source::TensorRole;

/// Returns the previous token's input minus the token's, `[n_embd, n_tokens]`. A state keeps the last token's input.
pub(in crate::blocks) fn step_back(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    state: &str,
    x: Value,
) -> Result<Value, ArchError> {
    let channels = cx.model.hparams.n_embd;
    let steps = conv::window(b, cx, state, [1, channels], x)?;
    let before = conv::step(b, &steps, 0, "x_prev")?;
    let before = conv::flat(b, before, channels, "x_prev")?;
    let kind = BinaryKind::Sub;
    b.push(Binary { kind }, vec![before, x], "sx")
}

/// Returns `x + back · share`, with the tensor's share per channel.
pub(in crate::blocks) fn mixed(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    tensor: &str,
    [x, back]: [Value; 2],
    name: &str,
) -> Result<Value, ArchError> {
    let share = b.tensor_name(tensor, "weight");
    let embd = cx.model.hparams.embd();
    let share = b.require(&share, &[embd], TensorRole::Scale)?;
    let y = b.mul(back, share, name)?;
    b.add(y, x, name)
}

/// Requires the shares of `n` mixtures, `[n_embd, 1, 1, n]`. Returns them as `[n_embd, n]`.
pub(super) fn shares(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    n: u64,
) -> Result<Value, ArchError> {
    let name = b.tensor_name(FUSED, "weight");
    let embd = cx.model.hparams.embd();
    let one = Size::new(1, "one number per channel");
    let sizes = [embd, one, one, Size::new(n, "the number of mixtures")];
    let shares = b.require(&name, &sizes, TensorRole::Scale)?;
    b.reshape(shares, [embd.n.into(), n.into()], FUSED)
}

pub(super) const FUSED: &str = "time_mix_lerp_fused";
