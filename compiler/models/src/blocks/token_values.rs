//! A vector per vocabulary token, added to the values.

use tpc_ir::op::{GetRows, InputKind, UnaryKind};
use tpc_ir::{Dim, Value};

use super::builder::Builder;
use super::context::LayerContext;
use super::table::vocabulary;
use crate::description::Presence;
use crate::error::ArchError;
use crate::size::Size;
use crate::source::TensorRole;

/// Adds the tokens' vectors to the values `v: [dv, heads, n_tokens]`, in layers with a gate.
pub(super) fn add(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    x: Value,
    v: Value,
) -> Result<Value, ArchError> {
    let presence = cx.model.arch.attention.token_values;
    let width = cx.layer.v_width;
    let sizes = [width, vocabulary(&cx.model)];
    let table = b.find("value_embd.weight", &sizes, TensorRole::Embedding, presence)?;
    let Some(table) = table else {
        return Ok(v);
    };
    let heads = Size::new(cx.layer.n_head_kv, "attention.head_count_kv");
    let gate = b.tensor_name("attn_ve_gate", "weight");
    let sizes = [cx.model.hparams.embd(), heads];
    let Some(gate) = b.optional(&gate, &sizes, TensorRole::Matrix, Presence::Optional)? else {
        return Ok(v);
    };
    let table = b.load(&table);
    let tokens = b.input(InputKind::Tokens);
    let rows = b.push(GetRows { window: None }, vec![table, tokens], "inp_ve")?;
    let dims = [cx.layer.heads.dv.into(), heads.n.into(), b.n_tokens()];
    let rows = b.reshape(rows, dims, "inp_ve")?;
    let gate = b.mul_mat(gate, x, "attn_ve_gate")?;
    let gate = b.unary(&[UnaryKind::Sigmoid], gate, "attn_ve_gate")?;
    let gate = b.reshape(
        gate,
        [Dim::ONE, heads.n.into(), b.n_tokens()],
        "attn_ve_gate",
    )?;
    let rows = b.mul(rows, gate, "inp_ve_gated")?;
    b.add(v, rows, "Vcur_ve")
}
