use tpc_runtime::Batch;

use super::pace::Pace;
use crate::error::Error;
use crate::generate::confidence::Confidence;
use crate::generate::decoder::Decoder;
use crate::generate::slot::Frontier;

/// A slot that asks for drafts.
pub struct DraftRequest<'s> {
    /// The sequence.
    pub seq: u32,
    /// Tokens in the caches.
    pub read: &'s [u32],
    /// Tokens to read before the drafts.
    pub pending: &'s [u32],
    /// The last token of the slot in the batch.
    pub frontier: Option<Frontier>,
    /// Maximum number of drafts.
    pub most: usize,
    /// The drafts.
    pub drafts: &'s mut Vec<u32>,
    /// The confidence in the drafts.
    pub confidence: &'s mut Option<Confidence>,
}

impl DraftRequest<'_> {
    /// Returns the text's tokens.
    pub fn text(&self) -> Vec<u32> {
        [self.read, self.pending].concat()
    }

    /// True if the slot waits for drafts: no earlier source has drafted, and the batch has the logits of its last token.
    pub fn is_open(&self) -> bool {
        self.drafts.is_empty() && self.frontier.is_some_and(|f| f.row.is_some())
    }

    /// Returns the number of tokens of the text.
    pub const fn len(&self) -> usize {
        self.read.len() + self.pending.len()
    }

    /// True if the text is empty.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A source of drafted tokens. The model checks them in its next batch.
pub trait DraftSource {
    /// Drafts tokens after the text of each request that does not have drafts yet. `batch` is the model's last batch.
    ///
    /// # Errors
    /// Returns an error if a model fails.
    fn draft(
        &mut self,
        model: &mut dyn Decoder,
        batch: &Batch,
        requests: &mut [DraftRequest<'_>],
        pace: &mut Pace,
    ) -> Result<(), Error>;
}
