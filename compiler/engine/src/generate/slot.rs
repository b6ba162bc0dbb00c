use std::ops::{ControlFlow, Range};

use tpc_diag::Diagnostic;
use tpc_runtime::{Batch, Logits, TokenPos};
use tpc_text::{Sampler, Tokenizer};

use super::confidence::Confidence;
use super::sink::TokenSink;
use crate::error::Error;

/// The reason why an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// An end token, the maximum length, or a stop by the user.
    Done,
    /// The context is full.
    Full,
    /// The sink returned `Break`.
    SinkClosed,
    /// The sampler or the sink failed.
    Failed,
}

/// A sequence with its prompt, answer and sampler.
pub struct Slot<'t, S> {
    /// Number of the sequence.
    pub seq: u32,
    /// Tokens in the caches.
    pub read: Vec<u32>,
    /// Number of tokens up to the end of the prompt.
    pub prompt: usize,
    /// Tokens to read before the answer continues.
    pub pending: Vec<u32>,
    /// Position at which a batch ends, so that the caller can save the sequence's states there.
    pub pause_at: Option<usize>,
    /// Drafted tokens after the pending tokens.
    pub drafts: Vec<u32>,
    /// The confidence in the drafts.
    pub confidence: Option<Confidence>,
    /// Tokens of the answer.
    pub answer: Vec<u32>,
    /// Number of tokens drafted for the answer.
    pub drafted: usize,
    /// Number of accepted drafts.
    pub accepted: usize,
    /// The part of the last batch that belongs to the slot.
    pub share: BatchShare,
    /// The reason why the answer ended; `None` while it continues.
    pub end: Option<End>,
    /// The error that ended the answer.
    pub error: Option<Error>,
    /// True if the end has been reported.
    pub closed: bool,
    /// The sampler of the answer's tokens.
    pub sampler: Sampler,
    /// The receiver of the answer's tokens.
    pub sink: S,
    /// Maximum number of tokens in the answer.
    pub max_tokens: usize,
    /// The tokenizer that recognises end tokens; `None` to ignore end tokens.
    pub ends: Option<&'t Tokenizer>,
}

impl<'t, S> Slot<'t, S> {
    /// Creates a slot for an empty sequence.
    pub fn new(seq: u32, sampler: Sampler, sink: S) -> Slot<'t, S> {
        Slot {
            seq,
            read: Vec::new(),
            prompt: 0,
            pending: Vec::new(),
            pause_at: None,
            drafts: Vec::new(),
            confidence: None,
            answer: Vec::new(),
            drafted: 0,
            accepted: 0,
            share: BatchShare::default(),
            end: None,
            error: None,
            closed: false,
            sampler,
            sink,
            max_tokens: usize::MAX,
            ends: None,
        }
    }

    /// True if the slot has read its prompt.
    pub(super) fn answers(&self) -> bool {
        !self.answer.is_empty()
    }

    /// Returns the number of pending tokens that a batch may read.
    pub(super) fn readable(&self) -> usize {
        let pause = self.pause_at.and_then(|at| at.checked_sub(self.read.len()));
        let most = pause.filter(|n| *n > 0).unwrap_or(usize::MAX);
        self.pending.len().min(most)
    }

    pub(super) fn fail(&mut self, error: Error) {
        self.end = Some(End::Failed);
        self.error = Some(error);
        self.drafts.clear();
        self.pending.clear();
    }

    /// Queues a prompt in an empty slot.
    pub fn begin(&mut self, prompt: &[u32]) {
        prompt.iter().for_each(|&id| self.sampler.accept(id));
        self.prompt = prompt.len();
        self.pending.extend_from_slice(prompt);
    }
}

/// The part of a batch that belongs to a slot.
#[derive(Clone, Debug, Default)]
pub struct BatchShare {
    /// Indices of the slot's tokens in the batch.
    pub tokens: Range<usize>,
    /// Output rows of the slot.
    pub rows: Range<usize>,
    /// The last token that the slot keeps, after decoding.
    pub frontier: Option<Frontier>,
}

/// The last token of a batch that a slot keeps.
#[derive(Clone, Copy, Debug)]
pub struct Frontier {
    /// Index in the batch.
    pub token: usize,
    /// Output row; `None` within the prompt.
    pub row: Option<usize>,
    /// The next token.
    pub next: u32,
}

/// The result of comparing drafts with sampled tokens.
#[derive(Clone, Copy, Debug, Default)]
pub struct DraftVerdict {
    /// Number of accepted drafts.
    pub accepted: usize,
    /// True if the caches hold rejected drafts.
    pub rejected: bool,
}

impl<S: TokenSink> Slot<'_, S> {
    /// Appends up to `room` pending tokens to a batch. Also appends the drafts if all pending tokens fit.
    pub fn put(&mut self, batch: &mut Batch, room: usize) {
        let n = self.readable().min(room);
        let whole = n == self.pending.len();
        let drafts = match whole {
            true => self.drafts.len().min(room - n),
            false => 0,
        };
        self.drafts.truncate(drafts);
        let (begin, first_row) = (batch.tokens.len(), batch.output_rows.len());
        let tokens = self.pending[..n].iter().chain(&self.drafts);
        for (i, &token) in tokens.enumerate() {
            let at = TokenPos {
                pos: (self.read.len() + i) as u32,
                seq: self.seq,
            };
            let logits = match whole && i + 1 >= n {
                true => Logits::Requested,
                false => Logits::NotRequested,
            };
            batch.push(token, at, logits);
        }
        self.share = BatchShare {
            tokens: begin..batch.tokens.len(),
            rows: first_row..batch.output_rows.len(),
            frontier: None,
        };
    }

    /// Records the tokens read, and continues the answer with the tokens that `choose` samples for the slot's rows. A draft that equals the
    /// sampled token is accepted, and the answer continues with the next row.
    ///
    /// # Errors
    /// Returns the errors of the sampler and the sink.
    pub fn continue_with(
        &mut self,
        mut choose: impl FnMut(&mut Sampler, usize) -> Result<u32, Diagnostic>,
    ) -> Result<DraftVerdict, Error> {
        let BatchShare { tokens, rows, .. } = self.share.clone();
        let n = tokens.len() - self.drafts.len();
        self.read.extend(self.pending.drain(..n));
        let mut out = DraftVerdict::default();
        for i in rows.clone() {
            let next = choose(&mut self.sampler, i).map_err(Error::usage)?;
            let ended = self.accept(next)?;
            if ended || self.drafts.get(out.accepted) != Some(&next) {
                self.pending.extend((!ended).then_some(next));
                break;
            }
            self.read.push(next);
            out.accepted += 1;
        }
        out.rejected = out.accepted < self.drafts.len();
        self.drafts.clear();
        let behind = match rows.is_empty() {
            true => self.pending.first(),
            false => self.pending.last(),
        };
        self.share.frontier = behind.filter(|_| !tokens.is_empty()).map(|&next| Frontier {
            token: tokens.start + n + out.accepted - 1,
            row: (!rows.is_empty()).then_some(rows.start + out.accepted),
            next,
        });
        Ok(out)
    }

    /// Returns the number of unread tokens: the pending tokens, or one if the maximum length or the sink ended the
    /// answer.
    pub fn unread(&self) -> usize {
        let ended_with_it = self.end == Some(End::SinkClosed)
            || self.max_tokens > 0 && self.answer.len() >= self.max_tokens;
        match self.pending.len() {
            0 if ended_with_it => 1,
            n => n,
        }
    }

    /// Returns the tokens that [`unread`](Self::unread) counts.
    pub fn unread_tokens(&self) -> Vec<u32> {
        match self.pending.as_slice() {
            [] => {
                let from = self.answer.len().saturating_sub(self.unread());
                self.answer[from..].to_vec()
            }
            pending => pending.to_vec(),
        }
    }

    /// Appends a token unless it is an end token; returns true if the answer ends.
    fn accept(&mut self, next: u32) -> Result<bool, Error> {
        if self.max_tokens == 0 || self.ends.is_some_and(|t| t.ends_generation(next)) {
            self.end = Some(End::Done);
            return Ok(true);
        }
        self.sampler.accept(next);
        self.answer.push(next);
        let record = self.sampler.take_record();
        if self.sink.push_recorded(next, record)? == ControlFlow::Break(()) {
            self.end = Some(End::SinkClosed);
        } else if self.answer.len() >= self.max_tokens {
            self.end = Some(End::Done);
        }
        Ok(self.end.is_some())
    }
}
