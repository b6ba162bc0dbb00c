//! A slot: a sequence that the model reads and continues, side by side with others.

use std::ops::{ControlFlow, Range};

use tpc_runtime::{Batch, Logits, TokenPos};
use tpc_text::{Sampler, Tokenizer};

use super::sink::TokenSink;
use crate::error::Error;

/// Why an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// A token ended it, it has as many as wanted, or the user ended it.
    Done,
    /// The context is full.
    Full,
    /// The sink takes no further token.
    SinkClosed,
}

/// A sequence that the model reads and continues.
pub struct Slot<'t, S> {
    /// The sequence.
    pub seq: u32,
    /// The tokens that the caches hold.
    pub read: Vec<u32>,
    /// The number of tokens of the prompt, with all before it.
    pub prompt: usize,
    /// Tokens that are still to be read, before an answer goes on.
    pub pending: Vec<u32>,
    /// Guesses of the tokens behind these.
    pub drafts: Vec<u32>,
    /// The tokens of the answer.
    pub answer: Vec<u32>,
    /// What of the last batch is this slot's.
    pub share: BatchShare,
    /// Why the answer ended; `None` while it goes on.
    pub end: Option<End>,
    /// Whether the end was told.
    pub closed: bool,
    /// What chooses the tokens.
    pub sampler: Sampler,
    /// The receiver of the answer's tokens.
    pub sink: S,
    /// The most tokens of the answer.
    pub max_tokens: usize,
    /// The tokenizer that knows the tokens that end an answer; `None` if no token does.
    pub ends: Option<&'t Tokenizer>,
}

impl<'t, S> Slot<'t, S> {
    /// Makes a slot for a sequence without tokens.
    pub fn new(seq: u32, sampler: Sampler, sink: S) -> Slot<'t, S> {
        Slot {
            seq,
            read: Vec::new(),
            prompt: 0,
            pending: Vec::new(),
            drafts: Vec::new(),
            answer: Vec::new(),
            share: BatchShare::default(),
            end: None,
            closed: false,
            sampler,
            sink,
            max_tokens: usize::MAX,
            ends: None,
        }
    }

    /// Makes a prompt the text that the slot is to read. The slot has read nothing.
    pub fn begin(&mut self, prompt: &[u32]) {
        prompt.iter().for_each(|&id| self.sampler.accept(id));
        self.prompt = prompt.len();
        self.pending.extend_from_slice(prompt);
    }
}

/// What of a batch is a slot's.
#[derive(Clone, Debug, Default)]
pub struct BatchShare {
    /// Its tokens, as indices into the batch.
    pub tokens: Range<usize>,
    /// Its output rows.
    pub rows: Range<usize>,
    /// The last of its tokens that stays, once the batch was decoded.
    pub frontier: Option<Frontier>,
}

/// The last token of a batch that a slot keeps.
#[derive(Clone, Copy, Debug)]
pub struct Frontier {
    /// Its index in the batch.
    pub token: usize,
    /// Its output row; `None` while the prompt is read.
    pub row: Option<usize>,
    /// The token behind it.
    pub next: u32,
}

/// What became of the tokens of a slot in a batch.
#[derive(Clone, Copy, Debug, Default)]
pub struct DraftVerdict {
    /// Guesses that were right.
    pub accepted: usize,
    /// Whether there are tokens behind the last right one that must be taken back.
    pub rejected: bool,
}

impl<S: TokenSink> Slot<'_, S> {
    /// Appends tokens that are to be read, as many as `room` holds, and guesses behind the last one.
    pub fn put(&mut self, batch: &mut Batch, room: usize) {
        let n = self.pending.len().min(room);
        let whole = n == self.pending.len();
        let guesses = match whole {
            true => self.drafts.len().min(room - n),
            false => 0,
        };
        self.drafts.truncate(guesses);
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

    /// Notes the tokens of a batch that were read, and continues the answer with the logits of its rows: each choice
    /// that is the guess is followed by the next row's.
    ///
    /// # Errors
    /// Those of the sampler and the stream.
    pub fn continue_with<'l>(
        &mut self,
        mut row: impl FnMut(usize) -> &'l [f32],
    ) -> Result<DraftVerdict, Error> {
        let BatchShare { tokens, rows, .. } = self.share.clone();
        let n = tokens.len() - self.drafts.len();
        self.read.extend(self.pending.drain(..n));
        let mut out = DraftVerdict::default();
        for i in rows.clone() {
            let next = self.sampler.sample(row(i)).map_err(Error::usage)?;
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

    /// Returns how many tokens at the end of the answer the model has not read: those that are pending, or the last one where the
    /// answer ended with it.
    pub fn unread(&self) -> usize {
        let ended_with_it = self.end == Some(End::SinkClosed)
            || self.max_tokens > 0 && self.answer.len() >= self.max_tokens;
        match self.pending.len() {
            0 if ended_with_it => 1,
            n => n,
        }
    }

    /// Takes a token of the answer, and tells whether the answer ends there.
    fn accept(&mut self, next: u32) -> Result<bool, Error> {
        if self.max_tokens == 0 || self.ends.is_some_and(|t| t.ends_generation(next)) {
            self.end = Some(End::Done);
            return Ok(true);
        }
        self.sampler.accept(next);
        self.answer.push(next);
        if self.sink.push(next)? == ControlFlow::Break(()) {
            self.end = Some(End::SinkClosed);
        } else if self.answer.len() >= self.max_tokens {
            self.end = Some(End::Done);
        }
        Ok(self.end.is_some())
    }
}
