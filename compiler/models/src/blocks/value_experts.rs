//! Values that a few of several projections compute.

use tpc_ir::op::{MulMatId, Sum, UnaryKind};
use tpc_ir::{Dim, Value};

use super::builder::Builder;
use super::context::LayerContext;
use super::router;
use crate::error::ArchError;
use crate::hparams::ExpertHParams;
use crate::source::TensorRole;

/// Returns the values for `x: [n_embd, n_tokens]`, `[heads · head size, n_tokens]`.
pub(super) fn values(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    hp: &ExpertHParams,
    x: Value,
) -> Result<Value, ArchError> {
    let (embd, width) = (cx.model.hparams.embd(), cx.layer.v_width);
    let count = router::value_expert_count(hp);
    let routing = router::route_values(b, cx, hp, x)?;
    let weight = b.tensor_name("attn_v_exps", "weight");
    let weight = b.require(&weight, &[embd, width, count], TensorRole::Experts)?;
    let x = b.reshape(x, [embd.n.into(), Dim::ONE, b.n_tokens()], "v_moe_in")?;
    let op = MulMatId { window: None };
    let v = b.push(op, vec![weight, x, routing.ids], "v_moe")?;
    let v = b.unary(&[UnaryKind::Silu], v, "v_moe_silu")?;
    let v = b.mul(v, routing.weights, "v_moe_weighted")?;
    let v = b.push(Sum { axis: 1 }, vec![v], "v_moe_sum")?;
    b.reshape(v, [width.n.into(), b.n_tokens()], "Vcur")
}
