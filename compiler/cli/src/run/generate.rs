//! Generation: batches that mix prompts and single tokens of several sequences, until all answers have ended.

use std::time::Instant;

use tpc_diag::Diagnostic;
use tpc_runtime::{Batch, Data, ExecError, Tensor};

use super::interrupt::Interrupt;
use super::lane::{End, Lane, Share};
use super::speed::{Speed, Step};
use crate::codes;
use crate::engine::{Model, execution_failure};
use crate::output::Failure;

/// What is done when a sequence fills its context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WhenFull {
    /// The answer ends.
    End,
    /// So many tokens at the begin are kept, and half of the others go.
    Shift {
        /// Tokens at the begin that stay; `None` for the prompt.
        keep: Option<usize>,
    },
}

/// A model that continues sequences.
pub(super) struct Generation<'m> {
    pub(super) model: &'m mut dyn Model,
    /// The most tokens of a sequence.
    pub(super) n_ctx: usize,
    /// The most tokens of a batch.
    pub(super) batch: usize,
    pub(super) when_full: WhenFull,
    /// Why the context cannot be shifted, where it cannot.
    pub(super) unshifted: Option<String>,
    pub(super) interrupt: &'m Interrupt,
    pub(super) speed: Speed,
    pub(super) buffers: Buffers,
}

/// Memory that is used again from batch to batch.
#[derive(Debug, Default)]
pub(super) struct Buffers {
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

impl Generation<'_> {
    /// Makes a lane one that has read a text as far as it begins as this one does, and is to read the rest.
    ///
    /// # Errors
    /// Those of the model.
    pub(super) fn rewind(&mut self, lane: &mut Lane<'_>, text: &[u32]) -> Result<(), Failure> {
        let alike = lane
            .read
            .iter()
            .zip(text)
            .take_while(|(a, b)| a == b)
            .count();
        // The last token is read again, for its logits.
        let alike = alike.min(text.len().saturating_sub(1));
        let kept = match self.model.can_truncate(lane.seq, alike as u64) {
            true => alike,
            false => 0,
        };
        self.back_to(lane, kept)?;
        lane.pending.extend_from_slice(&text[kept..]);
        lane.prompt = text.len();
        Ok(())
    }

    /// Makes a lane one that has read its first `n` tokens, and is to read nothing.
    ///
    /// # Errors
    /// Those of the model.
    pub(super) fn back_to(&mut self, lane: &mut Lane<'_>, n: usize) -> Result<(), Failure> {
        self.model
            .truncate(lane.seq, n as u64)
            .map_err(|e| execution_failure(&e))?;
        lane.read.truncate(n);
        lane.pending.clear();
        Ok(())
    }

    /// Generates the answer to what a lane is to read.
    ///
    /// # Errors
    /// Those of [`Self::run`].
    pub(super) fn answer(&mut self, lane: &mut Lane<'_>) -> Result<(), Failure> {
        let Lane {
            sampler, pending, ..
        } = lane;
        pending.iter().for_each(|&id| sampler.accept(id));
        lane.answer.clear();
        (lane.end, lane.closed) = (None, false);
        self.run(std::slice::from_mut(lane), |_, _| Ok(()))
    }

    /// Continues the lanes until all have ended; `ended` is told of each, and may put another sequence in its place.
    ///
    /// # Errors
    /// Those of the model, the samplers and the streams.
    pub(super) fn run<'t>(
        &mut self,
        lanes: &mut [Lane<'t>],
        mut ended: impl FnMut(&mut dyn Model, &mut Lane<'t>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let work = self.interrupt.work();
        loop {
            for lane in &mut *lanes {
                self.make_room(lane)?;
                if work.ends() {
                    lane.end.get_or_insert(End::Done);
                }
            }
            for lane in lanes.iter_mut().filter(|l| l.end.is_some() && !l.closed) {
                lane.closed = true;
                ended(&mut *self.model, lane)?;
            }
            if lanes.iter().all(|l| l.end.is_some()) {
                return Ok(());
            }
            self.step(lanes)?;
        }
    }

    /// Makes room for the next token of a lane, or ends it.
    fn make_room(&mut self, lane: &mut Lane<'_>) -> Result<(), Failure> {
        loop {
            let room = self.n_ctx.saturating_sub(lane.read.len());
            lane.drafts
                .truncate(room.saturating_sub(lane.pending.len()));
            if lane.end.is_some() || lane.pending.len() <= room {
                return Ok(());
            }
            let WhenFull::Shift { keep } = self.when_full else {
                lane.end = Some(End::Full);
                return Ok(());
            };
            let keep = keep.unwrap_or(lane.prompt);
            let keep = keep.min(lane.read.len().saturating_sub(4));
            let n = (lane.read.len() - keep) / 2;
            if n == 0 {
                lane.end = Some(End::Full);
                return Ok(());
            }
            match self.model.shift(lane.seq, keep as u64, n as u64) {
                Ok(()) => drop(lane.read.drain(keep..keep + n)),
                // What was generated so far is not lost.
                Err(ExecError::CannotRewind { why, .. }) => {
                    self.unshifted = Some(why);
                    lane.end = Some(End::Full);
                }
                Err(e) => return Err(execution_failure(&e)),
            }
        }
    }

    /// Puts tokens of every lane that goes on into the batch, and returns how many of them are of prompts.
    fn gather(&mut self, lanes: &mut [Lane<'_>]) -> usize {
        let batch = &mut self.buffers.batch;
        batch.clear();
        lanes.iter_mut().for_each(|l| l.share = Share::default());
        // Answers go on before prompts are read.
        let mut answers = 0;
        for prompts in [false, true] {
            let these = |l: &&mut Lane<'_>| l.end.is_none() && l.answer.is_empty() == prompts;
            for lane in lanes.iter_mut().filter(these) {
                lane.put(batch, self.batch - batch.tokens.len());
            }
            answers = if prompts { answers } else { batch.tokens.len() };
        }
        batch.tokens.len() - answers
    }

    /// Decodes a batch with tokens of every lane that goes on.
    fn step(&mut self, lanes: &mut [Lane<'_>]) -> Result<(), Failure> {
        let failed = |e: ExecError| execution_failure(&e);
        let begun = Instant::now();
        let prompt = self.gather(lanes);
        for lane in lanes.iter().filter(|l| !l.drafts.is_empty()) {
            self.model.checkpoint(lane.seq).map_err(failed)?;
        }
        let logits = self.model.step(&self.buffers.batch).map_err(failed)?;
        let n_vocab = logits.dims()[0];
        let logits = as_f32(logits, &mut self.buffers.logits).map_err(failed)?;
        let mut rejected = false;
        let mut done = Step {
            tokens: self.buffers.batch.tokens.len(),
            prompt,
            ..Step::default()
        };
        for lane in lanes.iter_mut().filter(|l| !l.share.tokens.is_empty()) {
            let before = lane.answer.len();
            done.drafted += lane.drafts.len();
            let judged = lane.continue_with(|i| &logits[i * n_vocab..][..n_vocab])?;
            done.accepted += judged.accepted;
            rejected |= judged.rejected;
            match before {
                0 => done.begun += lane.answer.len(),
                _ => done.generated += lane.answer.len() - before,
            }
        }
        if rejected {
            self.take_back(lanes).map_err(failed)?;
        }
        self.draft(lanes).map_err(failed)?;
        done.time = begun.elapsed();
        self.speed.count(&done);
        Ok(())
    }

    /// Takes the tokens that were guessed wrong out of the caches. Where that is not possible, all of the batch go, and those
    /// that were right are read again.
    fn take_back(&mut self, lanes: &mut [Lane<'_>]) -> Result<(), ExecError> {
        for lane in lanes.iter_mut().filter(|l| !l.share.tokens.is_empty()) {
            let held = self.model.next_position(lane.seq);
            let wanted = lane.read.len() as u64;
            if held <= wanted {
                continue;
            }
            let before = held.saturating_sub(lane.share.tokens.len() as u64);
            let can = |&pos: &u64| self.model.can_truncate(lane.seq, pos);
            let pos = [wanted, before].into_iter().find(can).unwrap_or(0);
            self.model.truncate(lane.seq, pos)?;
            let again = lane.read.split_off(pos as usize);
            lane.pending.splice(..0, again);
        }
        Ok(())
    }

    /// Guesses the tokens behind the next one of every lane, where the model has blocks that do.
    fn draft(&mut self, lanes: &mut [Lane<'_>]) -> Result<(), ExecError> {
        let n_drafts = self.model.n_drafts();
        if n_drafts == 0 || lanes.iter().all(|l| l.end.is_some()) {
            return Ok(());
        }
        let Buffers {
            batch,
            logits,
            next,
        } = &mut self.buffers;
        next.clear();
        next.extend(batch.tokens.iter().skip(1).chain([&0]));
        for f in lanes.iter().filter_map(|l| l.share.frontier) {
            next[f.token] = f.next;
        }
        for n in 1..=n_drafts {
            let drafted = self.model.draft_step(next)?;
            let n_vocab = drafted.dims()[0];
            let drafted = as_f32(drafted, logits)?;
            next.rotate_left(1);
            for lane in lanes.iter_mut().filter(|l| l.end.is_none()) {
                let Some(f) = lane.share.frontier else {
                    continue;
                };
                next[f.token] = match f.row {
                    Some(row) => likeliest(&drafted[row * n_vocab..][..n_vocab]),
                    None => lane.pending.get(n).copied().unwrap_or(0),
                };
                lane.drafts.extend(f.row.map(|_| next[f.token]));
            }
        }
        Ok(())
    }
}

/// The note that no further token can be generated.
pub(super) fn full(n_ctx: usize, unshifted: Option<&str>) -> Diagnostic {
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
pub(super) enum Asked {
    /// The command line.
    Once,
    /// A chat, with all that was said before it.
    InChat,
}

/// Fails unless a prompt of `n` tokens, and the begin of an answer, fit.
pub(super) fn fits(n: usize, n_ctx: usize, prompt: Asked) -> Result<(), Failure> {
    if n <= n_ctx {
        return Ok(());
    }
    let message = format!("the prompt has {n} tokens, and the context {n_ctx}");
    let d = Diagnostic::new(&codes::LONG_PROMPT, "prompt", message);
    let larger = format!("a larger context: -c {}", n.next_multiple_of(1024));
    Err(Failure::usage(d.help(match prompt {
        Asked::Once => larger,
        Asked::InChat => format!("/clear begins a new conversation; or {larger}"),
    })))
}
