use tpc_ir::Value;
use tpc_ir::op::{GetRows, InputKind};

use super::builder::Builder;
use super::context::Context;
use super::norm;
use crate::description::Presence;
use crate::error::ArchError;
use crate::size::Size;
use crate::source::TensorRole;

/// Returns the token embedding, `[n_embd, n_vocab]`.
pub(super) fn table(b: &mut Builder<'_>, cx: &Context<'_>) -> Result<Value, ArchError> {
    let sizes = [cx.hparams.embd(), vocabulary(cx)];
    let (name, role) = ("token_embd.weight", TensorRole::Embedding);
    match b.optional(name, &sizes, role, cx.arch.embedding.table)? {
        Some(table) => Ok(table),
        None => b.require("output.weight", &sizes, TensorRole::Output),
    }
}

pub(super) fn vocabulary(cx: &Context<'_>) -> Size {
    Size {
        n: cx.hparams.n_vocab,
        from: "the vocabulary (tokenizer.ggml.tokens or vocab_size)",
    }
}

/// Returns the first layer's input, `[n_embd, n_tokens]`.
pub(crate) fn embedding(b: &mut Builder<'_>, cx: &Context<'_>) -> Result<Value, ArchError> {
    let form = &cx.arch.embedding;
    let rows = |b: &mut Builder<'_>, table, index, name| {
        b.push(GetRows { window: None }, vec![table, index], name)
    };
    let embd = table(b, cx)?;
    let tokens = b.input(InputKind::Tokens);
    let mut x = rows(b, embd, tokens, "embd")?;
    if let Some(scale) = cx.hparams.embedding.scale {
        x = b.scale(x, scale, "inp_scaled")?;
    }
    if form.plain_norm {
        x = norm::without_weight(b, cx, x, "inp_norm")?;
    }
    if norm::exists(b, cx, "token_embd_norm", &[cx.hparams.embd()], form.norm)? {
        x = norm::stream(b, cx, "token_embd_norm", x, "inp_norm")?;
    }
    if form.positions == Presence::Absent {
        return Ok(x);
    }
    let n_positions = Size {
        n: cx.hparams.positions.n_ctx_train,
        from: "context_length",
    };
    let name = "position_embd.weight";
    let sizes = [cx.hparams.embd(), n_positions];
    let Some(learned) = b.optional(name, &sizes, TensorRole::Embedding, form.positions)? else {
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
    let learned = rows(b, learned, positions, "pos_embd")?;
    b.add(x, learned, "inpL")
}
