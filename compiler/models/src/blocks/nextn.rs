//! Blocks that guess further tokens ahead (multi-token prediction, "nextn").
//!
//! Block `k` guesses the token that is `k + 1` after each token of the batch. It takes the token `k` after it, which is
//! known by then, and the hidden state that the model (for the first block) or the block before it made there:
//!
//! ```text
//! x = eh_proj · [enorm(embedding of the token); hnorm(hidden state)]
//! x = an ordinary block of the model, with KV caches of its own
//! logits = head · norm(x)
//! ```
//!
//! Embedding, last norm and head are the model's unless the block has its own. A token's position, and the cell of the
//! caches that it is stored in, are those that the token of the batch has: attention sees distances only, so that all
//! that matters is that they are counted alike.

use tpc_ir::Value;
use tpc_ir::op::{Concat, GetRows, InputKind};

use super::builder::Builder;
use super::context::LayerContext;
use super::embedding::{table, vocabulary};
use super::{head, norm};
use crate::description::{DraftForm, DraftInput, Presence};
use crate::error::ArchError;
use crate::size::Size;
use crate::source::TensorRole;

/// What such a block makes.
pub(crate) struct Draft {
    /// What it hands on to the next: `[n_embd, n_tokens]`.
    pub(crate) hidden: Value,
    /// The logits of the tokens that these are wanted of: `[n_vocab, n_outputs]`.
    pub(crate) logits: Value,
}

/// What the first block is given of `x: [n_embd, n_tokens]`, which leaves the last layer.
pub(crate) fn first_hidden(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    form: &DraftForm,
    x: Value,
) -> Result<Value, ArchError> {
    match form.input {
        DraftInput::Normed => b.with_model_tensors(|b| {
            let tensor = cx.model.arch.head.norm;
            norm::stream(b, &cx.model, tensor, x, "h_nextn")
        }),
        DraftInput::Residual => Ok(x),
    }
}

/// What enters a block of the tokens so many `ahead` and a hidden state: `[n_embd, n_tokens]`.
pub(crate) fn input(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    ahead: u32,
    hidden: Value,
) -> Result<Value, ArchError> {
    let model = &cx.model;
    let embd = model.hparams.embd();
    let own = b.tensor_name("nextn.embed_tokens", "weight");
    let sizes = [embd, vocabulary(model)];
    let embeddings = match b.optional(&own, &sizes, TensorRole::Embedding, Presence::Optional)? {
        Some(own) => own,
        None => table(b, model)?,
    };
    let tokens = b.input(InputKind::NextTokens(ahead));
    let looked_up = GetRows { window: None };
    let token = b.push(looked_up, vec![embeddings, tokens], "mtp_tok_embd")?;
    let token = norm::stream(b, model, "nextn.enorm", token, "mtp_enorm")?;
    let hidden = norm::stream(b, model, "nextn.hnorm", hidden, "mtp_hnorm")?;
    let both = b.push(Concat { axis: 0 }, vec![token, hidden], "mtp_concat")?;
    b.linear(
        "nextn.eh_proj",
        both,
        [Size::product(2, embd.n, "2 × embedding_length")?, embd],
        Presence::Never,
        TensorRole::Matrix,
        "mtp_eh_proj",
    )
}

/// What is made of `x: [n_embd, n_tokens]`, which leaves a block.
pub(crate) fn output(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    form: &DraftForm,
    x: Value,
) -> Result<Draft, ArchError> {
    let (hidden, x) = match form.input {
        DraftInput::Normed => {
            let x = normed(b, cx, form, x, "h_nextn")?;
            (x, head::wanted(b, x, "mtp_rows")?)
        }
        DraftInput::Residual => {
            let rows = head::wanted(b, x, "mtp_rows")?;
            (x, normed(b, cx, form, rows, "mtp_shared_head_norm")?)
        }
    };
    let logits = match head::projected_by(b, &cx.model, "nextn.shared_head_head", x)? {
        Some(own) => own,
        None => head::projected(b, &cx.model, x)?,
    };
    Ok(Draft { hidden, logits })
}

/// Normalises by the block's own norm, or by the model's last.
fn normed(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    form: &DraftForm,
    x: Value,
    name: &str,
) -> Result<Value, ArchError> {
    let model = &cx.model;
    for tensor in form.norms {
        if norm::exists(b, tensor, &[model.hparams.embd()], Presence::Optional)? {
            return norm::stream(b, model, tensor, x, name);
        }
    }
    b.with_model_tensors(|b| norm::stream(b, model, model.arch.head.norm, x, name))
}
