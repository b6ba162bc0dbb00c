//! Embeddings per layer, looked up by token and mixed with a projection of the token embedding. A gate at the end of
//! each layer adds them to the residual stream.

use tpc_ir::op::{GetRows, InputKind, UnaryKind};
use tpc_ir::{Dim, Value};

use super::builder::Builder;
use super::context::{Context, LayerContext};
use super::norm;
use crate::description::Presence;
use crate::error::ArchError;
use crate::size::Size;
use crate::source::TensorRole;

/// Returns all layers' embeddings, `[width, layers, n_tokens]`, from the first layer's input `x: [n_embd, n_tokens]`.
pub(crate) fn inputs(
    b: &mut Builder<'_>,
    cx: &Context<'_>,
    x: Value,
) -> Result<Option<Value>, ArchError> {
    let hp = cx.hparams;
    let Some([width, all]) = hp.embedding.per_layer else {
        return Ok(None);
    };
    let vocabulary = super::table::vocabulary(cx);
    let layers = hp.layers.len() as u64;
    let dims = [width.n.into(), layers.into(), b.n_tokens()];
    let table = "per_layer_token_embd.weight";
    let presence = cx.arch.embedding.per_layer_tokens;
    let table = b.optional(table, &[all, vocabulary], TensorRole::Embedding, presence)?;
    let projected = b.linear(
        "per_layer_model_proj",
        x,
        [hp.embd(), all],
        Presence::Absent,
        TensorRole::Matrix,
        "per_layer_proj",
    )?;
    let projected = b.scale(projected, 1.0 / root(hp.n_embd), "per_layer_proj_scaled")?;
    let projected = b.reshape(projected, dims.clone(), "per_layer_proj")?;
    let tensor = "per_layer_proj_norm";
    let projected = norm::with_weight(b, cx, tensor, &[width], projected, tensor)?;
    let Some(table) = table else {
        return Ok(Some(projected));
    };
    let tokens = b.input(InputKind::Tokens);
    let looked_up = GetRows { window: None };
    let looked_up = b.push(looked_up, vec![table, tokens], "inp_per_layer_selected")?;
    let looked_up = b.scale(looked_up, root(width.n), "inp_per_layer_scaled")?;
    let looked_up = b.reshape(looked_up, dims, "inp_per_layer")?;
    let sum = b.add(projected, looked_up, "inp_per_layer_sum")?;
    // Keeps the variance of the summands.
    b.scale(sum, 1.0 / root(2), "inp_per_layer_mixed").map(Some)
}

/// Adds a layer's gated embedding, a slice of `all`, to the layer's output.
pub(crate) fn add(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    all: Value,
    x: Value,
) -> Result<Value, ArchError> {
    let hp = cx.model.hparams;
    let Some([width, _]) = hp.embedding.per_layer else {
        return Ok(x);
    };
    let matrix = |b: &mut Builder<'_>, tensor: &str, x: Value, sizes: [Size; 2], name: &str| {
        b.project(tensor, x, sizes, name)
    };
    let gate = matrix(b, "inp_gate", x, [hp.embd(), width], "per_layer_gate")?;
    let gate = b.unary(&[UnaryKind::Gelu], gate, "per_layer_gate_act")?;
    let own = b.slice(all, 1, cx.layer.index.into(), Dim::ONE, "inp_this_layer")?;
    let own = b.reshape(own, [width.n.into(), b.n_tokens()], "inp_this_layer")?;
    let y = b.mul(gate, own, "per_layer_gated")?;
    let y = matrix(b, "proj", y, [width, hp.embd()], "per_layer_out")?;
    let y = norm::stream(b, &cx.model, "post_norm", y, "per_layer_post_norm")?;
    b.add(x, y, "l_out_per_layer")
}

fn root(n: u64) -> f32 {
    (n as f32).sqrt()
}
