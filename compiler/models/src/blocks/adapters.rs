//! Products with the low-rank adapters of tokens.

use tpc_ir::op::MulMatId;
use tpc_ir::{Dim, Value};

use super::builder::Builder;
use super::context::LayerContext;
use crate::error::ArchError;
use crate::size::Size;
use crate::source::TensorRole;

/// Adds the product of the tokens' adapters of `tensor` with `x: [rows, n_tokens]` to `y: [columns, n_tokens]`, in models
/// with adapters.
pub(super) fn add(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    tensor: &str,
    [rows, columns]: [Size; 2],
    x: Value,
    y: Value,
) -> Result<Value, ArchError> {
    const NAME: &str = "adapted";
    let (Some(hp), Some(ids)) = (&cx.model.hparams.adapters, b.adapters()) else {
        return Ok(y);
    };
    let part = |b: &mut Builder<'_>, part, sizes: [Size; 2], x| {
        let w = b.tensor_name(tensor, part);
        let w = b.require(&w, &[sizes[0], sizes[1], hp.slots], TensorRole::Experts)?;
        b.push(MulMatId { window: None }, vec![w, x, ids], NAME)
    };
    let x = b.reshape(x, [rows.n.into(), Dim::ONE, b.n_tokens()], NAME)?;
    let low = part(b, "lora_a", [rows, hp.rank], x)?;
    let delta = part(b, "lora_b", [hp.rank, columns], low)?;
    let delta = b.reshape(delta, [columns.n.into(), b.n_tokens()], NAME)?;
    b.add(y, delta, NAME)
}
