use tpc_runtime::{Batch, Logits, TokenPos};

use super::windows::Window;

/// The largest batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of tokens.
    pub tokens: usize,
    /// Maximum number of tokens with logits.
    pub rows: usize,
}

/// A batch with the token that follows each row of logits in the text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScoredBatch {
    /// The batch. Only scored predictions request logits.
    pub batch: Batch,
    /// The next token of each output row.
    pub targets: Vec<u32>,
}

/// Cuts a window into batches of sequence 0. Omits the window's last token, whose prediction is not scored. `begin`
/// replaces the first token of a marked window.
pub fn batches(
    text: &[u32],
    window: &Window,
    begin: Option<u32>,
    limits: Limits,
) -> Vec<ScoredBatch> {
    let text = &text[window.start..window.start + window.len];
    let mut out: Vec<ScoredBatch> = Vec::new();
    let is_full = |b: &ScoredBatch| {
        b.batch.tokens.len() >= limits.tokens.max(1) || b.targets.len() >= limits.rows.max(1)
    };
    for (pos, pair) in text.windows(2).enumerate() {
        if out.last().is_none_or(is_full) {
            out.push(ScoredBatch::default());
        }
        let Some(ScoredBatch { batch, targets }) = out.last_mut() else {
            continue;
        };
        let token = match begin {
            Some(begin) if pos == 0 && window.marked => begin,
            _ => pair[0],
        };
        let at = TokenPos {
            pos: pos as u32,
            seq: 0,
        };
        if pos < window.first {
            batch.push(token, at, Logits::NotRequested);
        } else {
            batch.push(token, at, Logits::Requested);
            targets.push(pair[1]);
        }
    }
    out
}
