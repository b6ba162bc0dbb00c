use tpc_ir::op::{GetRows, InputKind};
use tpc_ir::{Dim, Value};

use super::builder::Builder;
use super::context::Context;
use super::table::{scale, table};
use super::{norm, switch};
use crate::description::Presence;
use crate::error::ArchError;
use crate::size::Size;
use crate::source::TensorRole;

/// Returns the first layer's input, `[n_embd, n_tokens]`.
pub(crate) fn embedding(b: &mut Builder<'_>, cx: &Context<'_>) -> Result<Value, ArchError> {
    let form = &cx.arch.embedding;
    let embd = table(b, cx)?;
    let tokens = b.input(InputKind::Tokens);
    let x = b.push(GetRows { window: None }, vec![embd, tokens], "embd")?;
    let x = scale(b, cx, x)?;
    let mut x = switch::switch(b, cx, x)?;
    if form.plain_norm {
        x = norm::without_weight(b, cx, x, "inp_norm")?;
    }
    x = add_type(b, cx, x)?;
    x = add_positions(b, cx, x)?;
    if norm::exists(b, cx, "token_embd_norm", &[cx.hparams.embd()], form.norm)? {
        x = norm::stream(b, cx, "token_embd_norm", x, "inp_norm")?;
    }
    Ok(x)
}

/// Adds the vector of the first token type, if the file has types. All tokens have this type.
fn add_type(b: &mut Builder<'_>, cx: &Context<'_>, x: Value) -> Result<Value, ArchError> {
    let (presence, Some(types)) = (cx.arch.embedding.types, cx.hparams.embedding.types) else {
        return Ok(x);
    };
    let sizes = [cx.hparams.embd(), types];
    let name = "token_types.weight";
    let Some(types) = b.optional(name, &sizes, TensorRole::Bias, presence)? else {
        return Ok(x);
    };
    let first = b.slice(types, 1, 0, Dim::ONE, "type_embd")?;
    b.add(x, first, "inp_typed")
}

/// Adds the learned vectors of the tokens' positions, if the model has them.
fn add_positions(b: &mut Builder<'_>, cx: &Context<'_>, x: Value) -> Result<Value, ArchError> {
    let presence = cx.arch.embedding.positions;
    if presence == Presence::Absent {
        return Ok(x);
    }
    let n_positions = Size {
        n: cx.hparams.positions.n_ctx_train,
        from: "context_length",
    };
    let name = "position_embd.weight";
    let sizes = [cx.hparams.embd(), n_positions];
    let Some(learned) = b.optional(name, &sizes, TensorRole::Embedding, presence)? else {
        return Ok(x);
    };
    if cx.options.ctx_size > n_positions.n {
        return Err(ArchError::ContextTooLong {
            found: cx.options.ctx_size,
            limit: n_positions.n,
            key: format!("{}.{}", cx.arch.name, n_positions.from),
        });
    }
    let positions = b.input(InputKind::Positions);
    let learned = b.push(
        GetRows { window: None },
        vec![learned, positions],
        "pos_embd",
    )?;
    b.add(x, learned, "inpL")
}
