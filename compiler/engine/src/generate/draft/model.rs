use std::collections::BTreeMap;
use std::time::Instant;

use tpc_runtime::{Batch, ExecError, Predicted};

use super::pace::Pace;
use super::source::{DraftRequest, DraftSource};
use crate::error::Error;
use crate::generate::confidence::Confidence;
use crate::generate::decoder::Decoder;
use crate::logits::{argmax, as_f32};

/// The most tokens that a model usually reads before it drafts.
const USUAL: usize = 32;

/// Drafts of a second model with the same vocabulary.
pub struct ModelDrafts<'d> {
    model: &'d mut dyn Decoder,
    /// Maximum tokens per batch.
    batch: usize,
    /// Maximum tokens per sequence.
    n_ctx: usize,
    /// Number of tokens that the model knows.
    n_vocab: usize,
    /// Maximum number of drafts.
    most: usize,
    /// The tokens in the model's caches.
    read: BTreeMap<u32, Vec<u32>>,
    logits: Vec<f32>,
}

impl<'d> ModelDrafts<'d> {
    /// Creates a source of up to `most` drafts from a session with `n_ctx` tokens per sequence and batches of `batch`
    /// tokens.
    pub fn new(
        model: &'d mut dyn Decoder,
        [n_ctx, batch]: [usize; 2],
        n_vocab: usize,
        most: usize,
    ) -> ModelDrafts<'d> {
        ModelDrafts {
            model,
            batch: batch.max(1),
            n_ctx,
            n_vocab,
            most,
            read: BTreeMap::new(),
            logits: Vec::new(),
        }
    }

    /// Returns the number of tokens at the start of `text` that the caches hold.
    fn common(&self, seq: u32, text: &[u32]) -> usize {
        let read = self.read.get(&seq).map_or(&[][..], Vec::as_slice);
        let pairs = read.iter().zip(text);
        pairs.take_while(|(a, b)| a == b).count()
    }

    /// Truncates a sequence to a prefix of `text`, and reads the rest. Returns the model's next token.
    fn follow(&mut self, seq: u32, text: &[u32]) -> Result<u32, ExecError> {
        // Read the last token again to get its logits.
        let common = self.common(seq, text).min(text.len().saturating_sub(1));
        let read = self.read.entry(seq).or_default();
        let kept = (0..=common)
            .rev()
            .find(|&n| self.model.can_truncate(seq, n as u64));
        let kept = kept.unwrap_or(0);
        self.model.truncate(seq, kept as u64)?;
        read.truncate(kept);
        let mut next = 0;
        for part in text[kept..].chunks(self.batch) {
            next = self.step(seq, part)?;
        }
        // States of recurrent models can go back to this token.
        self.model.checkpoint(seq)?;
        Ok(next)
    }

    fn step(&mut self, seq: u32, tokens: &[u32]) -> Result<u32, ExecError> {
        let read = self.read.entry(seq).or_default();
        let batch = Batch::sequence(tokens, read.len() as u32, seq).last_only();
        let next = match self.model.step_best(&batch, 1)? {
            Predicted::All(logits) => argmax(as_f32(logits, &mut self.logits)?),
            Predicted::Best(best) => best.row(0).first().map_or(0, |(id, _)| *id),
        };
        read.extend_from_slice(tokens);
        Ok(next)
    }
}

impl DraftSource for ModelDrafts<'_> {
    fn draft(
        &mut self,
        _: &mut dyn Decoder,
        _: &Batch,
        requests: &mut [DraftRequest<'_>],
        pace: &mut Pace,
    ) -> Result<(), Error> {
        for request in requests.iter_mut().filter(|r| r.is_open()) {
            let room = self.n_ctx.saturating_sub(request.len());
            let most = request.most.min(self.most).min(room);
            let known = |&id: &u32| (id as usize) < self.n_vocab;
            let mut text = request.read.iter().chain(request.pending);
            if most == 0 || !text.all(known) {
                continue;
            }
            *request.confidence = Some(Confidence::Model);
            let n = pace.length(Confidence::Model, most);
            if n == 0 {
                continue;
            }
            let text = request.text();
            let begun = Instant::now();
            let behind = text.len() - self.common(request.seq, &text);
            let mut next = self.follow(request.seq, &text)?;
            let followed = begun.elapsed();
            request.drafts.push(next);
            for _ in 1..n {
                next = self.step(request.seq, &[next])?;
                request.drafts.push(next);
            }
            // A prompt is read once, so its time does not count.
            match behind <= USUAL {
                true => pace.drafted(n, begun.elapsed()),
                false if n > 1 => pace.drafted(n - 1, begun.elapsed() - followed),
                false => {}
            }
        }
        Ok(())
    }
}
