//! Runs tokens and collects the logits of each token.

use tpc_runtime::{Batch, ExecError};

use crate::progress::Progress;
use tpc_engine::AnySession;

pub(super) struct Evaluation {
    pub(super) n_vocab: usize,
    /// The model's logits, `[n_vocab]` per token.
    pub(super) logits: Vec<f64>,
    /// The logits of each drafting block.
    pub(super) drafts: Vec<Vec<f64>>,
}

impl Evaluation {
    /// Compares the draft `ahead` tokens later with the model's choice. Returns the numbers of equal choices and of
    /// comparisons.
    pub(super) fn agreement(&self, ahead: usize, draft: &[f64]) -> (usize, usize) {
        let choices = |logits: &[f64]| -> Vec<Option<usize>> {
            let best = |row: &[f64]| {
                let row = row.iter().enumerate();
                row.max_by(|a, b| a.1.total_cmp(b.1)).map(|(id, _)| id)
            };
            logits.chunks(self.n_vocab.max(1)).map(best).collect()
        };
        let (drafted, own) = (choices(draft), choices(&self.logits));
        let pairs = || drafted.iter().zip(own.iter().skip(ahead));
        (pairs().filter(|(a, b)| a == b).count(), pairs().count())
    }
}

/// Runs the tokens as one sequence, in batches of at most `ubatch`. Drafts after each batch.
pub(super) fn execute(
    model: &mut AnySession<'_>,
    tokens: &[u32],
    (ubatch, n_draft): (usize, usize),
) -> Result<Evaluation, ExecError> {
    let progress = Progress::with_steps("running tokens", tokens.len());
    let mut out = Evaluation {
        n_vocab: 0,
        logits: Vec::new(),
        drafts: vec![Vec::new(); n_draft],
    };
    let mut first = 0;
    for part in tokens.chunks(ubatch.max(1)) {
        let logits = model.step(&Batch::sequence(part, first, 0))?;
        out.n_vocab = logits.dims()[0];
        out.logits.extend_from_slice(&logits.reals()?);
        for (ahead, draft) in (1..).zip(&mut out.drafts) {
            // Tokens after the last one are unknown. Zeros replace them; drafts from these zeros are ignored.
            let later = tokens.iter().copied().skip(first as usize + ahead);
            let next: Vec<u32> = later.chain(std::iter::repeat(0)).take(part.len()).collect();
            draft.extend_from_slice(&model.draft_step(&next)?.reals()?);
        }
        first += part.len() as u32;
        progress.advance(part.len());
    }
    Ok(out)
}
