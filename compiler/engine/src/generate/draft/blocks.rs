use tpc_runtime::{Batch, ExecError};

use super::pace::Pace;
use super::source::{DraftRequest, DraftSource};
use crate::error::Error;
use crate::generate::confidence::Confidence;
use crate::generate::decoder::Decoder;
use crate::logits::{argmax, as_f32};

/// Drafts of the model's own blocks (multi-token prediction).
#[derive(Debug, Default)]
pub struct BlockDrafts {
    /// Logits as f32, if the executor computes in f64.
    logits: Vec<f32>,
    /// The next token for each token of the batch.
    next: Vec<u32>,
}

impl DraftSource for BlockDrafts {
    /// Drafts after every batch, because the blocks have caches of their own.
    fn draft(
        &mut self,
        model: &mut dyn Decoder,
        batch: &Batch,
        requests: &mut [DraftRequest<'_>],
        _: &mut Pace,
    ) -> Result<(), Error> {
        let BlockDrafts { logits, next } = self;
        next.clear();
        next.extend(batch.tokens.iter().skip(1).chain([&0]));
        for f in requests.iter().filter_map(|r| r.frontier) {
            next[f.token] = f.next;
        }
        for n in 1..=model.n_drafts() {
            let drafted = match model.draft_step(next) {
                // A recurrent model cannot draft after a batch with unequal numbers of tokens per sequence.
                Err(ExecError::NothingToDraft) => return Ok(()),
                drafted => drafted?,
            };
            let n_vocab = drafted.dims()[0];
            let drafted = as_f32(drafted, logits)?;
            next.rotate_left(1);
            for request in &mut *requests {
                let Some(f) = request.frontier else {
                    continue;
                };
                next[f.token] = match f.row {
                    Some(row) => argmax(&drafted[row * n_vocab..][..n_vocab]),
                    None => request.pending.get(n).copied().unwrap_or(0),
                };
                if f.row.is_some() && request.drafts.len() < request.most {
                    request.drafts.push(next[f.token]);
                    *request.confidence = Some(Confidence::Blocks);
                }
            }
        }
        Ok(())
    }
}
