//! Runs the windows of a text through one or more sessions.

use tpc_engine::perplexity::{Limits, Rows, ScoredBatch, Window, batches};
use tpc_engine::{AnySession, as_f32};

use crate::output::Failure;
use crate::progress::Progress;

/// A consumer of predictions.
pub(super) trait Task {
    /// Receives the logits of a batch's scored predictions, one list of rows per session, and the next tokens.
    fn batch(&mut self, rows: &[Rows<'_>], targets: &[u32]) -> Result<(), Failure>;

    /// Ends window `i`.
    fn window(&mut self, i: usize) -> Result<(), Failure>;
}

pub(super) struct Text<'t> {
    pub(super) tokens: &'t [u32],
    pub(super) windows: &'t [Window],
    /// The token that begins marked windows.
    pub(super) begin: Option<u32>,
    pub(super) limits: Limits,
    /// Number of threads that compare logits.
    pub(super) threads: usize,
}

/// Runs all windows, each from an empty sequence.
pub(super) fn evaluate(
    sessions: &mut [AnySession<'_>],
    text: &Text<'_>,
    task: &mut dyn Task,
    progress: &Progress,
) -> Result<(), Failure> {
    let mut buffers = vec![Vec::new(); sessions.len()];
    for (i, window) in text.windows.iter().enumerate() {
        for session in &mut *sessions {
            session.remove_sequence(0);
        }
        for ScoredBatch { batch, targets } in batches(text.tokens, window, text.begin, text.limits)
        {
            let mut rows = Vec::with_capacity(sessions.len());
            for (session, buffer) in sessions.iter_mut().zip(&mut buffers) {
                let logits = session.step(&batch)?;
                let n_vocab = logits.dims()[0];
                rows.push(Rows {
                    logits: as_f32(logits, buffer)?,
                    n_vocab,
                    threads: text.threads,
                });
            }
            if !targets.is_empty() {
                task.batch(&rows, &targets)?;
            }
        }
        progress.advance(1);
        progress.aside(|| task.window(i))?;
    }
    Ok(())
}
