use std::time::Instant;

use tpc_diag::Diagnostic;
use tpc_runtime::{Batch, ExecError, Predicted};

use super::decoder::Decoder;
use super::draft::{BlockDrafts, DraftRequest, DraftSource, Pace};
use super::shares::share;
use super::sink::TokenSink;
use super::slot::{BatchShare, End, Slot};
use super::speed::{Speed, Step};
use crate::codes;
use crate::error::Error;
use crate::logits::LogitRows;

/// The reaction to a full context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenFull {
    /// End the answer.
    End,
    /// Keep the first tokens, and remove the older half of the other tokens.
    Shift {
        /// Number of tokens to keep; `None` for the prompt.
        keep: Option<usize>,
    },
}

/// A model that continues sequences.
pub struct Generator<'m> {
    /// The model.
    pub model: &'m mut dyn Decoder,
    /// Maximum tokens per sequence.
    pub n_ctx: usize,
    /// Maximum tokens per batch.
    pub batch: usize,
    /// Maximum prompt tokens in a batch that also continues answers.
    pub chunk: usize,
    /// The reaction to a full context.
    pub when_full: WhenFull,
    /// Reason why the last context shift failed.
    pub unshifted: Option<String>,
    /// Returns true to end all answers.
    pub stop: &'m dyn Fn() -> bool,
    /// The speed of all batches so far.
    pub speed: Speed,
    /// Memory that batches reuse.
    pub buffers: Buffers,
    /// Sources of drafts, by priority. The model's own blocks come first.
    pub drafts: Vec<Box<dyn DraftSource + 'm>>,
    /// The number of tokens to draft.
    pub pace: Pace,
}

/// Memory that batches reuse.
#[derive(Debug, Default)]
pub struct Buffers {
    batch: Batch,
    /// Logits as f32, if the executor computes in f64.
    logits: Vec<f32>,
}

const NEVER: &dyn Fn() -> bool = &|| false;

impl<'m> Generator<'m> {
    /// Creates a generator for sequences of `n_ctx` tokens and batches of `batch` tokens. Answers end if the context is
    /// full.
    pub fn new(model: &'m mut dyn Decoder, n_ctx: usize, batch: usize) -> Generator<'m> {
        let mut drafts: Vec<Box<dyn DraftSource + 'm>> = Vec::new();
        if model.n_drafts() > 0 {
            drafts.push(Box::new(BlockDrafts::default()));
        }
        Generator {
            model,
            n_ctx,
            batch,
            chunk: usize::MAX,
            when_full: WhenFull::End,
            unshifted: None,
            stop: NEVER,
            speed: Speed::default(),
            buffers: Buffers::default(),
            drafts,
            pace: Pace::default(),
        }
    }
}

impl Generator<'_> {
    /// Replaces the tokens of a slot by `text`. Keeps the common prefix if the model can truncate the sequence to it.
    ///
    /// # Errors
    /// Returns an error if the model cannot truncate the sequence.
    pub fn rewind(
        &mut self,
        slot: &mut Slot<'_, impl TokenSink>,
        text: &[u32],
    ) -> Result<(), Error> {
        let common = slot
            .read
            .iter()
            .zip(text)
            .take_while(|(a, b)| a == b)
            .count();
        // Read the last token again to get its logits.
        let common = common.min(text.len().saturating_sub(1));
        let kept = match self.model.can_truncate(slot.seq, common as u64) {
            true => common,
            false => 0,
        };
        self.back_to(slot, kept)?;
        slot.pending.extend_from_slice(&text[kept..]);
        slot.prompt = text.len();
        Ok(())
    }

    /// Truncates a slot to `n` tokens, and clears its pending tokens.
    ///
    /// # Errors
    /// Returns an error if the model cannot truncate the sequence.
    pub fn back_to(&mut self, slot: &mut Slot<'_, impl TokenSink>, n: usize) -> Result<(), Error> {
        self.model.truncate(slot.seq, n as u64)?;
        slot.read.truncate(n);
        slot.pending.clear();
        Ok(())
    }

    /// Reads a slot's pending tokens and generates the answer.
    ///
    /// # Errors
    /// Returns the errors of [`Self::run`].
    pub fn answer(&mut self, slot: &mut Slot<'_, impl TokenSink>) -> Result<(), Error> {
        let Slot {
            sampler, pending, ..
        } = slot;
        pending.iter().for_each(|&id| sampler.accept(id));
        slot.answer.clear();
        (slot.end, slot.closed) = (None, false);
        self.run(std::slice::from_mut(slot), |_, _| Ok(()))
    }

    /// Continues the slots until every answer has ended. Calls `ended` once per ended answer. `ended` may start another
    /// sequence in the slot.
    ///
    /// # Errors
    /// Returns the errors of the model, the samplers, the sinks and `ended`.
    pub fn run<'t, S: TokenSink, E: From<Error>>(
        &mut self,
        slots: &mut [Slot<'t, S>],
        mut ended: impl FnMut(&mut dyn Decoder, &mut Slot<'t, S>) -> Result<(), E>,
    ) -> Result<(), E> {
        loop {
            for slot in &mut *slots {
                if let Some(error) = slot.error.take() {
                    return Err(E::from(error));
                }
                self.make_room(slot)?;
                if (self.stop)() {
                    slot.end.get_or_insert(End::Done);
                }
            }
            for slot in slots.iter_mut().filter(|l| l.end.is_some() && !l.closed) {
                slot.closed = true;
                ended(&mut *self.model, slot)?;
            }
            if slots.iter().all(|l| l.end.is_some()) {
                return Ok(());
            }
            self.step(slots)?;
        }
    }

    /// Decodes one batch with tokens of all slots that have not ended. Slots at the front read their prompts first.
    ///
    /// An error of one slot's sampler or sink ends only this slot; [`Slot::error`] has the error.
    ///
    /// # Errors
    /// Returns the errors of the model and of the sources of drafts.
    pub fn advance(&mut self, slots: &mut [Slot<'_, impl TokenSink>]) -> Result<(), Error> {
        for slot in &mut *slots {
            self.make_room(slot)?;
        }
        match slots.iter().all(|l| l.end.is_some()) {
            true => Ok(()),
            false => self.step(slots),
        }
    }

    fn make_room(&mut self, slot: &mut Slot<'_, impl TokenSink>) -> Result<(), Error> {
        loop {
            let room = self.n_ctx.saturating_sub(slot.read.len());
            slot.drafts
                .truncate(room.saturating_sub(slot.pending.len()));
            if slot.end.is_some() || slot.pending.len() <= room {
                return Ok(());
            }
            let WhenFull::Shift { keep } = self.when_full else {
                slot.end = Some(End::Full);
                return Ok(());
            };
            let keep = keep.unwrap_or(slot.prompt);
            let keep = keep.min(slot.read.len().saturating_sub(4));
            let n = (slot.read.len() - keep) / 2;
            if n == 0 {
                slot.end = Some(End::Full);
                return Ok(());
            }
            match self.model.shift(slot.seq, keep as u64, n as u64) {
                Ok(()) => drop(slot.read.drain(keep..keep + n)),
                // Keep the tokens generated so far.
                Err(ExecError::CannotRewind { why, .. }) => {
                    self.unshifted = Some(why);
                    slot.end = Some(End::Full);
                }
                Err(e) => return Err(Error::from(e)),
            }
        }
    }

    /// Fills the batch with tokens of active slots; returns the number of prompt tokens.
    fn gather(&mut self, slots: &mut [Slot<'_, impl TokenSink>]) -> usize {
        let batch = &mut self.buffers.batch;
        batch.clear();
        slots
            .iter_mut()
            .for_each(|l| l.share = BatchShare::default());
        // Answers take priority over prompts.
        let open = |l: &&mut Slot<'_, _>| l.end.is_none();
        for slot in slots.iter_mut().filter(open).filter(|l| l.answers()) {
            slot.put(batch, self.batch - batch.tokens.len());
        }
        let answers = batch.tokens.len();
        let mut room = self.batch - answers;
        if answers > 0 {
            room = room.min(self.chunk);
        }
        let reading = slots.iter().filter(|l| l.end.is_none() && !l.answers());
        let mut shares: Vec<usize> = reading.map(Slot::readable).collect();
        share(&mut shares, room);
        let reading = slots.iter_mut().filter(open).filter(|l| !l.answers());
        for (slot, share) in reading.zip(shares) {
            slot.put(batch, share);
        }
        batch.tokens.len() - answers
    }

    fn step(&mut self, slots: &mut [Slot<'_, impl TokenSink>]) -> Result<(), Error> {
        let begun = Instant::now();
        let prompt = self.gather(slots);
        for slot in slots.iter().filter(|l| !l.drafts.is_empty()) {
            self.model.checkpoint(slot.seq)?;
        }
        let batch = &self.buffers.batch;
        let predicted = match wanted(slots) {
            Some(wanted) => self.model.step_best(batch, wanted)?,
            None => Predicted::All(self.model.step(batch)?),
        };
        let rows = LogitRows::new(predicted, &mut self.buffers.logits)?;
        let mut rejected = false;
        let mut done = Step {
            tokens: self.buffers.batch.tokens.len(),
            prompt,
            ..Step::default()
        };
        for slot in slots.iter_mut().filter(|l| !l.share.tokens.is_empty()) {
            let (before, drafted) = (slot.answer.len(), slot.drafts.len());
            let judged = match slot.continue_with(|sampler, i| rows.sample(sampler, i)) {
                Ok(judged) => judged,
                Err(error) => {
                    slot.fail(error);
                    continue;
                }
            };
            slot.drafted += drafted;
            slot.accepted += judged.accepted;
            done.drafted += drafted;
            done.accepted += judged.accepted;
            let confidence = slot.confidence.take().filter(|_| slot.end.is_none());
            if let Some(confidence) = confidence {
                self.pace.judged(confidence, drafted, judged.accepted);
            }
            rejected |= judged.rejected;
            match before {
                0 => done.begun += slot.answer.len(),
                _ => done.generated += slot.answer.len() - before,
            }
        }
        if rejected {
            self.remove_rejected(slots)?;
        }
        if prompt == 0 {
            self.pace.batch(done.tokens, begun.elapsed());
        }
        self.draft(slots)?;
        done.time = begun.elapsed();
        self.speed.count(&done);
        Ok(())
    }

    /// Removes rejected drafts from the caches. If the sequence can only be truncated further, queues removed accepted
    /// tokens again.
    fn remove_rejected(&mut self, slots: &mut [Slot<'_, impl TokenSink>]) -> Result<(), ExecError> {
        for slot in slots.iter_mut().filter(|l| !l.share.tokens.is_empty()) {
            let held = self.model.next_position(slot.seq);
            let wanted = slot.read.len() as u64;
            if held <= wanted {
                continue;
            }
            let before = held.saturating_sub(slot.share.tokens.len() as u64);
            let can = |&pos: &u64| self.model.can_truncate(slot.seq, pos);
            let pos = [wanted, before].into_iter().find(can).unwrap_or(0);
            self.model.truncate(slot.seq, pos)?;
            let requeued = slot.read.split_off(pos as usize);
            if !requeued.is_empty() {
                self.pace.reread();
            }
            slot.pending.splice(..0, requeued);
        }
        Ok(())
    }

    /// Drafts tokens for the next batch.
    fn draft(&mut self, slots: &mut [Slot<'_, impl TokenSink>]) -> Result<(), Error> {
        if self.drafts.is_empty() || slots.iter().all(|l| l.end.is_some()) {
            return Ok(());
        }
        self.pace
            .slots(slots.iter().filter(|l| l.end.is_none()).count());
        let going = slots.iter_mut().filter(|l| l.end.is_none());
        let mut requests: Vec<DraftRequest<'_>> = going
            .map(|slot| DraftRequest {
                seq: slot.seq,
                read: &slot.read,
                pending: &slot.pending,
                frontier: slot.share.frontier,
                // The batch's own token is not a draft.
                most: slot.max_tokens.saturating_sub(slot.answer.len() + 1),
                drafts: &mut slot.drafts,
                confidence: &mut slot.confidence,
            })
            .collect();
        for source in &mut self.drafts {
            source.draft(
                &mut *self.model,
                &self.buffers.batch,
                &mut requests,
                &mut self.pace,
            )?;
        }
        Ok(())
    }
}

/// Returns the number of largest logits that all slots with output rows need; `None` if a slot needs all logits.
fn wanted(slots: &[Slot<'_, impl TokenSink>]) -> Option<usize> {
    let mut most = None;
    for slot in slots.iter().filter(|l| !l.share.rows.is_empty()) {
        most = most.max(Some(slot.sampler.wanted()?));
    }
    most
}

/// Returns the note that the context is full.
pub fn context_full(n_ctx: usize, unshifted: Option<&str>) -> Diagnostic {
    let message = format!("the answer ends here: the context of {n_ctx} tokens is full");
    let d = Diagnostic::new(&codes::CONTEXT_FULL, "context", message);
    match unshifted {
        None => d.help(
            "give a larger context with -c N, or --context-shift, which forgets the oldest tokens",
        ),
        Some(why) => d.help(format!(
            "give a larger context with -c N; --context-shift is not possible: {why}"
        )),
    }
}

/// The origin of a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PromptOrigin {
    /// The command line.
    Single,
    /// A chat with earlier messages.
    Chat,
}

/// Checks that a prompt of `n` tokens fits the context.
///
/// # Errors
/// Returns TPC0426 if it does not fit.
pub fn fits(n: usize, n_ctx: usize, prompt: PromptOrigin) -> Result<(), Error> {
    if n <= n_ctx {
        return Ok(());
    }
    let message = format!("the prompt has {n} tokens, the context only {n_ctx}");
    let d = Diagnostic::new(&codes::LONG_PROMPT, "prompt", message);
    let larger = format!("give a larger context: -c {}", n.next_multiple_of(1024));
    Err(Error::usage(d.help(match prompt {
        PromptOrigin::Single => larger,
        PromptOrigin::Chat => format!("begin a new conversation with /clear, or {larger}"),
    })))
}
