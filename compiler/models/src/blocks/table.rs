//! The table of token embeddings.

use tpc_ir::Value;

use super::builder::Builder;
use super::context::Context;
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

/// Multiplies embeddings by the model's factor, if any.
pub(super) fn scale(b: &mut Builder<'_>, cx: &Context<'_>, x: Value) -> Result<Value, ArchError> {
    match cx.hparams.embedding.scale {
        Some(scale) => b.scale(x, scale, "inp_scaled"),
        None => Ok(x),
    }
}
