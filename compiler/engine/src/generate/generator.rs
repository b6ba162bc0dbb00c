//! Generation: batches that mix prompts and single tokens of several sequences, until all answers have ended.

use std::time::Instant;

use tpc_diag::Diagnostic;
use tpc_runtime::{Batch, Data, ExecError, Tensor};

use super::decoder::Decoder;
use super::sink::TokenSink;
use super::slot::{BatchShare, End, Slot};
use super::speed::{Speed, Step};
use crate::codes;
use crate::error::Error;

/// What is done when a sequence fills its context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenFull {
    /// The answer ends.
    End,
    /// So many tokens at the begin are kept, and half of the others go.
    Shift {
        /// Tokens at the begin that stay; `None` for the prompt.
        keep: Option<usize>,
    },
}

/// A model that continues sequences.
pub struct Generator<'m> {
    /// The model.
    pub model: &'m mut dyn Decoder,
    /// The most tokens of a sequence.
    pub n_ctx: usize,
    /// The most tokens of a batch.
    pub batch: usize,
    /// What happens when a sequence fills its context.
    pub when_full: WhenFull,
    /// Why the context cannot be shifted, where it cannot.
    pub unshifted: Option<String>,
    /// Returns whether all answers are to end now.
    pub stop: &'m dyn Fn() -> bool,
    /// The speed of all batches so far.
    pub speed: Speed,
    /// Memory of batches.
    pub buffers: Buffers,
}

/// Memory that is used again from batch to batch.
#[derive(Debug, Default)]
pub struct Buffers {
    batch: Batch,
    /// Logits as f32, of an executor that computes in f64.
    logits: Vec<f32>,
    /// Per token of the batch, the one behind it.
    next: Vec<u32>,
}

/// The logits of a batch, a row after the other.
fn as_f32<'l>(logits: &'l Tensor, buffer: &'l mut Vec<f32>) -> Result<&'l [f32], ExecError> {
    if let Data::F32(all) = logits.data() {
        return Ok(all);
    }
    buffer.clear();
    buffer.extend(logits.reals()?.iter().map(|&x| x as f32));
    Ok(buffer)
}

/// The id of the largest of some logits.
fn likeliest(row: &[f32]) -> u32 {
    let best = |best: (u32, f32), at: (u32, &f32)| match *at.1 > best.1 {
        true => (at.0, *at.1),
        false => best,
    };
    (0..).zip(row).fold((0, f32::NEG_INFINITY), best).0
}

/// Never stops an answer.
const NEVER: &dyn Fn() -> bool = &|| false;

impl<'m> Generator<'m> {
    /// Makes a generator for sequences of up to `n_ctx` tokens and batches of up to `batch`. A full context ends an answer.
    pub fn new(model: &'m mut dyn Decoder, n_ctx: usize, batch: usize) -> Generator<'m> {
        Generator {
            model,
            n_ctx,
            batch,
            when_full: WhenFull::End,
            unshifted: None,
            stop: NEVER,
            speed: Speed::default(),
            buffers: Buffers::default(),
        }
    }
}

impl Generator<'_> {
    /// Rewinds a slot to one that has read a text as far as it begins as this one does, and is to read the rest.
    ///
    /// # Errors
    /// Those of the model.
    pub fn rewind(
        &mut self,
        slot: &mut Slot<'_, impl TokenSink>,
        text: &[u32],
    ) -> Result<(), Error> {
        let alike = slot
            .read
            .iter()
            .zip(text)
            .take_while(|(a, b)| a == b)
            .count();
        // The last token is read again, for its logits.
        let alike = alike.min(text.len().saturating_sub(1));
        let kept = match self.model.can_truncate(slot.seq, alike as u64) {
            true => alike,
            false => 0,
        };
        self.back_to(slot, kept)?;
        slot.pending.extend_from_slice(&text[kept..]);
        slot.prompt = text.len();
        Ok(())
    }

    /// Rewinds a slot to one that has read its first `n` tokens, and is to read nothing.
    ///
    /// # Errors
    /// Those of the model.
    pub fn back_to(&mut self, slot: &mut Slot<'_, impl TokenSink>, n: usize) -> Result<(), Error> {
        self.model.truncate(slot.seq, n as u64)?;
        slot.read.truncate(n);
        slot.pending.clear();
        Ok(())
    }

    /// Generates the answer to what a slot is to read.
    ///
    /// # Errors
    /// Those of [`Self::run`].
    pub fn answer(&mut self, slot: &mut Slot<'_, impl TokenSink>) -> Result<(), Error> {
        let Slot {
            sampler, pending, ..
        } = slot;
        pending.iter().for_each(|&id| sampler.accept(id));
        slot.answer.clear();
        (slot.end, slot.closed) = (None, false);
        self.run(std::slice::from_mut(slot), |_, _| Ok(()))
    }

    /// Continues the slots until all have ended; `ended` is told of each, and may put another sequence in its place.
    ///
    /// # Errors
    /// Those of the model, the samplers and the streams.
    pub fn run<'t, S: TokenSink, E: From<Error>>(
        &mut self,
        slots: &mut [Slot<'t, S>],
        mut ended: impl FnMut(&mut dyn Decoder, &mut Slot<'t, S>) -> Result<(), E>,
    ) -> Result<(), E> {
        loop {
            for slot in &mut *slots {
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

    /// Makes room for the next token of a slot, or ends it.
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
                // What was generated so far is not lost.
                Err(ExecError::CannotRewind { why, .. }) => {
                    self.unshifted = Some(why);
                    slot.end = Some(End::Full);
                }
                Err(e) => return Err(Error::from(e)),
            }
        }
    }

    /// Puts tokens of every slot that goes on into the batch, and returns how many of them are of prompts.
    fn gather(&mut self, slots: &mut [Slot<'_, impl TokenSink>]) -> usize {
        let batch = &mut self.buffers.batch;
        batch.clear();
        slots
            .iter_mut()
            .for_each(|l| l.share = BatchShare::default());
        // Answers go on before prompts are read.
        let mut answers = 0;
        for prompts in [false, true] {
            let these = |l: &&mut Slot<'_, _>| l.end.is_none() && l.answer.is_empty() == prompts;
            for slot in slots.iter_mut().filter(these) {
                slot.put(batch, self.batch - batch.tokens.len());
            }
            answers = if prompts { answers } else { batch.tokens.len() };
        }
        batch.tokens.len() - answers
    }

    /// Decodes a batch with tokens of every slot that goes on.
    fn step(&mut self, slots: &mut [Slot<'_, impl TokenSink>]) -> Result<(), Error> {
        let begun = Instant::now();
        let prompt = self.gather(slots);
        for slot in slots.iter().filter(|l| !l.drafts.is_empty()) {
            self.model.checkpoint(slot.seq)?;
        }
        let logits = self.model.step(&self.buffers.batch)?;
        let n_vocab = logits.dims()[0];
        let logits = as_f32(logits, &mut self.buffers.logits)?;
        let mut rejected = false;
        let mut done = Step {
            tokens: self.buffers.batch.tokens.len(),
            prompt,
            ..Step::default()
        };
        for slot in slots.iter_mut().filter(|l| !l.share.tokens.is_empty()) {
            let before = slot.answer.len();
            done.drafted += slot.drafts.len();
            let judged = slot.continue_with(|i| &logits[i * n_vocab..][..n_vocab])?;
            done.accepted += judged.accepted;
            rejected |= judged.rejected;
            match before {
                0 => done.begun += slot.answer.len(),
                _ => done.generated += slot.answer.len() - before,
            }
        }
        if rejected {
            self.take_back(slots)?;
        }
        self.draft(slots)?;
        done.time = begun.elapsed();
        self.speed.count(&done);
        Ok(())
    }

    /// Takes the tokens that were guessed wrong out of the caches. Where that is not possible, all of the batch go, and those
    /// that were right are read again.
    fn take_back(&mut self, slots: &mut [Slot<'_, impl TokenSink>]) -> Result<(), ExecError> {
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
            let again = slot.read.split_off(pos as usize);
            slot.pending.splice(..0, again);
        }
        Ok(())
    }

    /// Guesses the tokens behind the next one of every slot, where the model has blocks that do.
    fn draft(&mut self, slots: &mut [Slot<'_, impl TokenSink>]) -> Result<(), ExecError> {
        let n_drafts = self.model.n_drafts();
        if n_drafts == 0 || slots.iter().all(|l| l.end.is_some()) {
            return Ok(());
        }
        let Buffers {
            batch,
            logits,
            next,
        } = &mut self.buffers;
        next.clear();
        next.extend(batch.tokens.iter().skip(1).chain([&0]));
        for f in slots.iter().filter_map(|l| l.share.frontier) {
            next[f.token] = f.next;
        }
        for n in 1..=n_drafts {
            let drafted = self.model.draft_step(next)?;
            let n_vocab = drafted.dims()[0];
            let drafted = as_f32(drafted, logits)?;
            next.rotate_left(1);
            for slot in slots.iter_mut().filter(|l| l.end.is_none()) {
                let Some(f) = slot.share.frontier else {
                    continue;
                };
                next[f.token] = match f.row {
                    Some(row) => likeliest(&drafted[row * n_vocab..][..n_vocab]),
                    None => slot.pending.get(n).copied().unwrap_or(0),
                };
                slot.drafts.extend(f.row.map(|_| next[f.token]));
            }
        }
        Ok(())
    }
}

/// Returns the note that no further token can be generated.
pub fn context_full(n_ctx: usize, unshifted: Option<&str>) -> Diagnostic {
    let message = format!("the context of {n_ctx} tokens is full: the answer ends here");
    let d = Diagnostic::new(&codes::CONTEXT_FULL, "context", message);
    match unshifted {
        None => d.help("a larger one: -c N; or --context-shift, which forgets the oldest tokens"),
        Some(why) => d.help(format!(
            "a larger one: -c N; --context-shift is not possible here: {why}"
        )),
    }
}

/// Where a prompt comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PromptOrigin {
    /// The command line.
    Single,
    /// A chat, with all that was said before it.
    Chat,
}

/// Checks that a prompt of `n` tokens, and the begin of an answer, fit.
///
/// # Errors
/// TPC0426.
pub fn fits(n: usize, n_ctx: usize, prompt: PromptOrigin) -> Result<(), Error> {
    if n <= n_ctx {
        return Ok(());
    }
    let message = format!("the prompt has {n} tokens, and the context {n_ctx}");
    let d = Diagnostic::new(&codes::LONG_PROMPT, "prompt", message);
    let larger = format!("a larger context: -c {}", n.next_multiple_of(1024));
    Err(Error::usage(d.help(match prompt {
        PromptOrigin::Single => larger,
        PromptOrigin::Chat => format!("/clear begins a new conversation; or {larger}"),
    })))
}
