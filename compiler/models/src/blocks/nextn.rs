//! Draft blocks (multi-token prediction, "nextn").
//!
//! Draft block `k` predicts the token `k + 1` positions after each token of the batch. The block reads the token `k`
//! positions after, which is known by then, and a hidden state: the model's for the first block, the previous block's
//! for others.
//!
//! ```text
//! x = eh_proj · [enorm(embedding of the token); hnorm(hidden state)]
//! x = an ordinary layer of the model, with KV caches of its own
//! logits = head · norm(x)
//! ```
//!
//! Embedding, last norm and head are the model's unless the block has its own. Positions and cache cells are the
//! batch's. Attention sees only distances, so the shift by `k` does not matter.

use tpc_ir::Value;
use tpc_ir::op::{Concat, GetRows, InputKind};

use super::builder::Builder;
use super::context::LayerContext;
use super::table::{table, vocabulary};
use super::{head, norm};
use crate::description::{DraftForm, DraftInput, DraftNorm, Presence};
use crate::error::ArchError;
use crate::size::Size;
use crate::source::TensorRole;

pub(crate) struct Draft {
    /// Input of the next draft block, `[n_embd, n_tokens]`.
    pub(crate) hidden: Value,
    /// Logits of the output tokens, `[n_vocab, n_outputs]`.
    pub(crate) logits: Value,
}

/// Returns the first draft block's hidden state, from the last layer's output `x: [n_embd, n_tokens]`.
pub(crate) fn first_hidden(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    form: &DraftForm,
    x: Value,
) -> Result<Value, ArchError> {
    match form.input {
        DraftInput::Normalised => norm::output(b, &cx.model, x, "h_nextn"),
        DraftInput::Residual => Ok(x),
    }
}

/// Returns the input of draft block `draft`, counted from 1, given a hidden state, `[n_embd, n_tokens]`.
pub(crate) fn input(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    draft: u32,
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
    let tokens = b.input(InputKind::NextTokens(draft));
    let looked_up = GetRows { window: None };
    let token = b.push(looked_up, vec![embeddings, tokens], "mtp_tok_embd")?;
    let token = norm::stream(b, model, "nextn.enorm", token, "mtp_enorm")?;
    let hidden = norm::stream(b, model, "nextn.hnorm", hidden, "mtp_hnorm")?;
    let both = b.push(Concat { axis: 0 }, vec![token, hidden], "mtp_concat")?;
    b.linear(
        "nextn.eh_proj",
        both,
        [Size::product(2, embd.n, "2 × embedding_length")?, embd],
        Presence::Absent,
        TensorRole::Matrix,
        "mtp_eh_proj",
    )
}

/// Returns a draft block's output for its layer's output `x: [n_embd, n_tokens]`.
pub(crate) fn output(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    form: &DraftForm,
    x: Value,
) -> Result<Draft, ArchError> {
    let (hidden, x) = match form.input {
        DraftInput::Normalised => {
            let x = normalise(b, cx, form, x, "h_nextn")?;
            (x, head::output_columns(b, x, "mtp_rows")?)
        }
        DraftInput::Residual => {
            let rows = head::output_columns(b, x, "mtp_rows")?;
            (x, normalise(b, cx, form, rows, "mtp_shared_head_norm")?)
        }
    };
    let logits = match head::projected_by(b, &cx.model, "nextn.shared_head_head", x)? {
        Some(own) => own,
        None => head::project(b, &cx.model, x)?,
    };
    Ok(Draft { hidden, logits })
}

/// Normalises `x` with the block's norm, or else the model's last norm.
fn normalise(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    form: &DraftForm,
    x: Value,
    name: &str,
) -> Result<Value, ArchError> {
    let model = &cx.model;
    for tensor in form.norms {
        if norm::exists(
            b,
            model,
            tensor,
            &[model.hparams.embd()],
            Presence::Optional,
        )? {
            return match form.norm {
                DraftNorm::Model => norm::stream(b, model, tensor, x, name),
                DraftNorm::Layer => {
                    norm::of_kind(b, model, tensor, model.hparams.draft_norm, x, name)
                }
            };
        }
    }
    norm::output(b, model, x, name)
}
