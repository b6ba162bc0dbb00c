//! A lane: a sequence that the model reads and continues, side by side with others.

use std::ops::Range;

use tpc_runtime::{Batch, Logits, TokenPos};
use tpc_text::{Sampler, Tokenizer};

use super::stream::{Reader, Stream};
use crate::output::Failure;

/// Why an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// A token ended it, it has as many as wanted, or the user ended it.
    Done,
    /// The context is full.
    Full,
    /// Nobody reads it any more.
    ReaderGone,
}

/// A sequence that the model reads and continues.
pub(super) struct Lane<'t> {
    /// The sequence.
    pub(super) seq: u32,
    /// The tokens that the caches hold.
    pub(super) read: Vec<u32>,
    /// The number of tokens of the prompt, with all before it.
    pub(super) prompt: usize,
    /// Tokens that are still to be read, before an answer goes on.
    pub(super) pending: Vec<u32>,
    /// Guesses of the tokens behind these.
    pub(super) drafts: Vec<u32>,
    /// The tokens of the answer.
    pub(super) answer: Vec<u32>,
    /// What of the last batch is this lane's.
    pub(super) share: Share,
    pub(super) end: Option<End>,
    /// Whether the end was told.
    pub(super) closed: bool,
    pub(super) sampler: Sampler,
    pub(super) stream: Stream<'t>,
    /// The most tokens of the answer.
    pub(super) most: usize,
    /// What knows the tokens that end an answer; `None` where none does.
    pub(super) ends: Option<&'t Tokenizer>,
}

/// What of a batch is a lane's.
#[derive(Clone, Debug, Default)]
pub(super) struct Share {
    /// Its tokens, as indices into the batch.
    pub(super) tokens: Range<usize>,
    /// Its output rows.
    pub(super) rows: Range<usize>,
    /// The last of its tokens that stays, once the batch was decoded.
    pub(super) frontier: Option<Frontier>,
}

/// The last token of a batch that a lane keeps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frontier {
    /// Its index in the batch.
    pub(super) token: usize,
    /// Its output row; `None` while the prompt is read.
    pub(super) row: Option<usize>,
    /// The token behind it.
    pub(super) next: u32,
}

/// What became of the tokens of a lane in a batch.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Judged {
    /// Guesses that were right.
    pub(super) accepted: usize,
    /// Whether there are tokens behind the last right one that must be taken back.
    pub(super) rejected: bool,
}

impl Lane<'_> {
    /// Appends tokens that are to be read, as many as `room` holds, and guesses behind the last one.
    pub(super) fn put(&mut self, batch: &mut Batch, room: usize) {
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
        self.share = Share {
            tokens: begin..batch.tokens.len(),
            rows: first_row..batch.output_rows.len(),
            frontier: None,
        };
    }

    /// Takes note of the tokens of a batch that were read, and continues the answer with the logits of its rows: each choice
    /// that is the guess is followed by the next row's.
    ///
    /// # Errors
    /// Those of the sampler and the stream.
    pub(super) fn continue_with<'l>(
        &mut self,
        mut row: impl FnMut(usize) -> &'l [f32],
    ) -> Result<Judged, Failure> {
        let Share { tokens, rows, .. } = self.share.clone();
        let n = tokens.len() - self.drafts.len();
        self.read.extend(self.pending.drain(..n));
        let mut out = Judged::default();
        for i in rows.clone() {
            let next = self.sampler.sample(row(i)).map_err(Failure::usage)?;
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

    /// How many tokens at the end of the answer the model has not read: those that are pending, or the last one where the
    /// answer ended with it.
    pub(super) fn unread(&self) -> usize {
        let ended_with_it =
            self.end == Some(End::ReaderGone) || self.most > 0 && self.answer.len() >= self.most;
        match self.pending.len() {
            0 if ended_with_it => 1,
            n => n,
        }
    }

    /// Takes a token of the answer, and tells whether the answer ends there.
    fn accept(&mut self, next: u32) -> Result<bool, Failure> {
        if self.most == 0 || self.ends.is_some_and(|t| t.ends_generation(next)) {
            self.end = Some(End::Done);
            return Ok(true);
        }
        self.sampler.accept(next);
        self.answer.push(next);
        if self.stream.push(next)? == Reader::Gone {
            self.end = Some(End::ReaderGone);
        } else if self.answer.len() >= self.most {
            self.end = Some(End::Done);
        }
        Ok(self.end.is_some())
    }
}
