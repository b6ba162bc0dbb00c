//! Attention without the token's own value: the part of the output that is parallel to it is subtracted.

use tpc_ir::op::{Binary, BinaryKind, Norm, NormKind, Repeat, Sum};
use tpc_ir::{DType, Dim, TensorType, Value};

use super::builder::Builder;
use super::context::LayerContext;
use crate::error::ArchError;
use crate::size::Size;
use crate::source::TensorRole;

/// Subtracts a share of the projection on the own values `v: [dv, KV heads, n_tokens]` from the heads
/// `y: [dv, heads, n_tokens]`, in layers with shares.
pub(super) fn subtract(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    y: Value,
    v: Value,
) -> Result<Value, ArchError> {
    const NAME: &str = "attn_xsa";
    let layer = cx.layer;
    let heads = Size::new(layer.n_head, "attention.head_count");
    let share = b.tensor_name("attn_xsa_alpha", "weight");
    let presence = cx.model.arch.attention.own_value;
    let Some(share) = b.optional(&share, &[heads], TensorRole::Scale, presence)? else {
        return Ok(y);
    };
    let (dv, kv, group): (Dim, Dim, Dim) = (
        layer.heads.dv.into(),
        layer.n_head_kv.into(),
        (layer.n_head / layer.n_head_kv).into(),
    );
    let norm = Norm {
        kind: NormKind::L2,
        eps: cx.model.hparams.attention.own_value_eps,
    };
    let unit = b.push(norm, vec![v], "Vcur_unit")?;
    let unit = b.reshape(unit, [dv.clone(), Dim::ONE, kv.clone(), b.n_tokens()], NAME)?;
    let grouped = [dv.clone(), group.clone(), kv.clone(), b.n_tokens()];
    let grouped_y = b.reshape(y, grouped.clone(), NAME)?;
    let dims = TensorType::new(DType::F32, grouped).dims;
    let unit = b.push(Repeat { dims }, vec![unit], NAME)?;
    let product = b.mul(grouped_y, unit, NAME)?;
    let length = b.push(Sum { axis: 0 }, vec![product], NAME)?;
    let share = b.reshape(share, [Dim::ONE, group, kv], NAME)?;
    let length = b.mul(length, share, NAME)?;
    let part = b.mul(unit, length, NAME)?;
    let kind = BinaryKind::Sub;
    let rest = b.push(Binary { kind }, vec![grouped_y, part], NAME)?;
    b.reshape(rest, [dv, layer.n_head.into(), b.n_tokens()], NAME)
}
