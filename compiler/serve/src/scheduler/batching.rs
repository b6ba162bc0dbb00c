use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::{Duration, Instant};

use tpc_engine::Error;
use tpc_engine::generate::{End, Generator, Slot};
use tpc_runtime::Batch;
use tpc_text::{Sampler, Tokenizer};

use super::job::{Command, Ended, Event, Finish, Job, Usage};
use super::prefixes::{Prefixes, common};
use super::queue::Queue;
use super::reply::Reply;
use crate::failure;
use crate::shared::Shared;
use crate::snapshot::{SlotState, Snapshot};

/// Common tokens that make a job wait for another job's prompt instead of reading them twice.
const WORTH_WAITING: usize = 64;

/// Assigns jobs to slots and advances all slots in common batches.
pub(crate) struct Scheduler<'m, 't> {
    generator: Generator<'m>,
    tokenizer: &'t Tokenizer,
    n_vocab: usize,
    shared: &'t Shared,
    queue: Queue,
    slots: Vec<Slot<'t, Reply<'t>>>,
    /// The requests of `slots`, in the same order.
    running: Vec<Running>,
    prefixes: Prefixes,
}

struct Running {
    job: Box<Job>,
    begun: Instant,
    cached: usize,
    /// Tokens of the answer after the last batch.
    answered: usize,
    last_token: Option<Instant>,
}

/// The sizes of a scheduler.
pub(crate) struct Sizes {
    /// Number of slots.
    pub(crate) n: usize,
    /// Number of logits per token.
    pub(crate) n_vocab: usize,
    /// Bytes of the prefix store.
    pub(crate) bytes: usize,
    /// True if the model has recurrent states.
    pub(crate) recurrent: bool,
}

impl<'m, 't> Scheduler<'m, 't> {
    /// Creates a scheduler with `n` slots and a prefix store of `bytes` bytes.
    pub(crate) fn new(
        generator: Generator<'m>,
        tokenizer: &'t Tokenizer,
        Sizes {
            n,
            n_vocab,
            bytes,
            recurrent,
        }: Sizes,
        shared: &'t Shared,
    ) -> Scheduler<'m, 't> {
        Scheduler {
            prefixes: Prefixes::new(n, bytes, recurrent),
            generator,
            tokenizer,
            n_vocab,
            shared,
            queue: Queue::default(),
            slots: Vec::new(),
            running: Vec::new(),
        }
    }

    /// Runs until the shutdown is complete or all senders of commands have gone.
    pub(crate) fn run(&mut self, commands: &Receiver<Command>) {
        while !self.shared.is_drained() && self.receive(commands) {
            self.drop_cancelled();
            self.admit();
            self.publish();
            if self.slots.is_empty() {
                continue;
            }
            match self.batch() {
                Ok(()) => self.end_slots(),
                Err(e) => self.fail_all(&e),
            }
        }
        for slot in &self.slots {
            slot.sink.fail(failure::shutdown());
        }
        for job in self.queue.drain() {
            let _ = job.events.send(Event::Failed(failure::shutdown()));
        }
    }

    /// Queues all new jobs. Waits for one if all slots are idle. Returns false if all senders have gone.
    fn receive(&mut self, commands: &Receiver<Command>) -> bool {
        if self.slots.is_empty() && self.queue.is_empty() {
            self.publish();
            match commands.recv() {
                Ok(command) => self.take(command),
                Err(_) => return false,
            }
        }
        loop {
            match commands.try_recv() {
                Ok(command) => self.take(command),
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => {
                    return !(self.slots.is_empty() && self.queue.is_empty());
                }
            }
        }
    }

    fn take(&mut self, command: Command) {
        match command {
            Command::Generate(job) => self.queue.push(job),
            // The other variants are not for a model that generates text.
            Command::Embed(_) | Command::Wake => {}
        }
    }

    fn drop_cancelled(&mut self) {
        let metrics = &self.shared.metrics;
        self.queue.retain(|job| {
            let cancelled = job.is_cancelled();
            metrics.cancelled.add(u64::from(cancelled));
            !cancelled
        });
        for at in (0..self.slots.len()).rev() {
            if self.slots[at].sink.is_cancelled() {
                metrics.cancelled.add(1);
                self.release(at);
            }
        }
    }

    /// Starts waiting jobs in idle sequences.
    fn admit(&mut self) {
        while !self.prefixes.idle().is_empty() {
            let (slots, running) = (&self.slots, &self.running);
            let of_user = |user: &str| running.iter().filter(|r| r.job.user == user).count();
            let (prefixes, model) = (&self.prefixes, &*self.generator.model);
            let ready = |job: &Job| {
                let cached = || prefixes.longest(model, &job.prompt);
                !job.reuse || !is_being_read(slots, &job.prompt, cached)
            };
            let Some(job) = self.queue.pop(of_user, ready) else {
                return;
            };
            if let Err((job, e)) = self.start(job) {
                self.shared.metrics.failed.add(1);
                let _ = job.events.send(Event::Failed(failure::first(&e)));
            }
        }
    }

    fn start(&mut self, mut job: Box<Job>) -> Result<(), (Box<Job>, Error)> {
        let mut sampler = match Sampler::new(job.settings.clone(), self.n_vocab) {
            Ok(sampler) => sampler,
            Err(d) => return Err((job, Error::usage(d))),
        };
        sampler.constrain(job.constraint.take());
        sampler.record(job.record);
        let model = &mut *self.generator.model;
        let Some(sequence) = self.prefixes.take(model, &job.prompt, job.reuse) else {
            return Err((job, Error::usage(failure::shutdown())));
        };
        let reply = Reply::new(self.tokenizer, &mut job);
        let mut slot = Slot::new(sequence.seq, sampler, reply);
        slot.max_tokens = job.max_tokens.unwrap_or(usize::MAX);
        slot.ends = (!job.ignore_end).then_some(self.tokenizer);
        slot.pending
            .extend_from_slice(&job.prompt[sequence.text.len()..]);
        slot.read = sequence.text;
        slot.prompt = job.prompt.len();
        self.prefixes.pause(&mut slot);
        job.prompt.iter().for_each(|&id| slot.sampler.accept(id));
        let cached = slot.read.len();
        self.shared.metrics.cached_tokens.add(cached as u64);
        let waited = job.arrived.elapsed();
        self.shared.metrics.queue.observe(waited.as_secs_f64());
        let _ = job.events.send(Event::Started);
        self.slots.push(slot);
        self.running.push(Running {
            job,
            begun: Instant::now(),
            cached,
            answered: 0,
            last_token: None,
        });
        Ok(())
    }

    fn batch(&mut self) -> Result<(), Error> {
        let open = self.slots.iter().map(|s| s.pending.len() + s.drafts.len());
        let tokens = open.sum::<usize>().min(self.generator.batch);
        let before = self.generator.speed;
        self.shared.pulse.begin(tokens);
        let begun = Instant::now();
        let result = self.generator.advance(&mut self.slots);
        let took = begun.elapsed();
        self.shared.pulse.end(tokens, took);
        let after = &self.generator.speed;
        let metrics = &self.shared.metrics;
        metrics.batch(
            after.prompt.tokens - before.prompt.tokens,
            after.steps.tokens + after.begun - before.steps.tokens - before.begun,
            took,
        );
        metrics.drafted.add((after.drafted - before.drafted) as u64);
        metrics
            .accepted
            .add((after.accepted - before.accepted) as u64);
        result?;
        self.count_tokens();
        self.save_prompts();
        Ok(())
    }

    /// Observes the times of new tokens.
    fn count_tokens(&mut self) {
        let now = Instant::now();
        let metrics = &self.shared.metrics;
        for (slot, running) in self.slots.iter().zip(&mut self.running) {
            let n = slot.answer.len() - running.answered;
            if n == 0 {
                continue;
            }
            running.answered = slot.answer.len();
            match running.last_token.replace(now) {
                None => {
                    let since = running.job.arrived.elapsed();
                    metrics.first_token.observe(since.as_secs_f64());
                }
                Some(last) => {
                    let each = now.duration_since(last).as_secs_f64() / n as f64;
                    (0..n).for_each(|_| metrics.between_tokens.observe(each));
                }
            }
        }
    }

    /// Stores the prompts that the last batch has read.
    fn save_prompts(&mut self) {
        let Scheduler {
            prefixes,
            generator,
            slots,
            running,
            ..
        } = self;
        for (slot, running) in slots.iter_mut().zip(running) {
            let read = !slot.share.tokens.is_empty() && slot.answer.len() <= 1;
            if read && running.job.reuse {
                prefixes.save(&*generator.model, slot);
            }
        }
    }

    fn end_slots(&mut self) {
        for at in (0..self.slots.len()).rev() {
            let slot = &mut self.slots[at];
            let Some(end) = slot.end else { continue };
            let running = &self.running[at];
            let metrics = &self.shared.metrics;
            metrics
                .request
                .observe(running.job.arrived.elapsed().as_secs_f64());
            if let Some(error) = slot.error.take() {
                metrics.failed.add(1);
                slot.sink.fail(failure::first(&error));
            } else {
                let usage = usage(slot, running);
                let finish = match (end, slot.sink.stopped.take()) {
                    (_, Some(stop)) => Finish::StopText(stop),
                    (End::Full, None) => Finish::Length,
                    (_, None) if slot.answer.len() >= slot.max_tokens => Finish::Length,
                    (_, None) => Finish::EndToken,
                };
                match slot.sink.is_cancelled() {
                    true => metrics.cancelled.add(1),
                    false => metrics.answered.add(1),
                }
                log(running, &finish, &usage);
                slot.sink.end(Ended { finish, usage });
            }
            self.release(at);
        }
    }

    /// Removes a slot. Its sequence keeps the text, unless the answer failed.
    fn release(&mut self, at: usize) {
        let mut slot = self.slots.swap_remove(at);
        let running = self.running.swap_remove(at);
        if slot.end != Some(End::Failed) && running.job.reuse {
            self.prefixes.save(&*self.generator.model, &mut slot);
        }
        let text = match slot.end {
            Some(End::Failed) => Vec::new(),
            _ => slot.read,
        };
        self.give_back(slot.seq, text);
    }

    fn give_back(&mut self, seq: u32, text: Vec<u32>) {
        if text.is_empty() {
            self.generator.model.remove_sequence(seq);
        }
        self.prefixes.give_back(seq, text);
    }

    /// Fails all running requests after an error of the model, and checks if the model still works.
    fn fail_all(&mut self, e: &Error) {
        let d = failure::first(e);
        tracing::error!(code = d.code.id, "the model failed: {d}");
        for at in (0..self.slots.len()).rev() {
            self.shared.metrics.failed.add(1);
            self.slots[at].sink.fail(d.clone());
            self.slots[at].end = Some(End::Failed);
            self.release(at);
        }
        self.prefixes.forget(&mut *self.generator.model);
        let works = self.warm_up().is_ok();
        self.shared.set_broken((!works).then(|| d.to_string()));
        if !works {
            for job in self.queue.drain() {
                let _ = job.events.send(Event::Failed(d.clone()));
            }
        }
    }

    /// Runs two small batches, so that the pulse knows the model's pace.
    ///
    /// # Errors
    /// Returns the model's error.
    pub(crate) fn warm_up(&mut self) -> Result<(), Error> {
        let n = self.generator.batch.min(self.generator.n_ctx).clamp(1, 32);
        for n in [1, n] {
            let batch = Batch::sequence(&vec![0; n], 0, 0).last_only();
            self.shared.pulse.begin(n);
            let begun = Instant::now();
            let result = self.generator.model.step(&batch).map(|_| ());
            self.generator.model.remove_sequence(0);
            self.shared.pulse.end(n, begun.elapsed());
            result?;
        }
        Ok(())
    }

    fn publish(&self) {
        let n_ctx = self.generator.n_ctx;
        let idle = self.prefixes.idle().iter().map(|i| SlotState {
            id: i.seq,
            n_ctx,
            n_past: i.text.len(),
            ..SlotState::default()
        });
        let busy = self.slots.iter().zip(&self.running);
        let busy = busy.map(|(slot, running)| SlotState {
            id: slot.seq,
            n_ctx,
            is_processing: true,
            id_task: Some(running.job.id),
            n_past: slot.read.len(),
            n_prompt_tokens: running.job.prompt.len(),
            n_decoded: slot.answer.len(),
        });
        let mut slots: Vec<SlotState> = idle.chain(busy).collect();
        slots.sort_unstable_by_key(|s| s.id);
        let waiting = self.queue.len();
        let prefixes = self.prefixes.statistics();
        self.shared.publish(Snapshot {
            slots,
            waiting,
            prefixes,
        });
    }
}

/// True if a slot reads tokens that begin `prompt`, and waiting for them saves many tokens over the `cached` ones.
fn is_being_read(
    slots: &[Slot<'_, Reply<'_>>],
    prompt: &[u32],
    cached: impl Fn() -> usize,
) -> bool {
    slots.iter().filter(|s| s.answer.is_empty()).any(|slot| {
        let read = common(&slot.read, prompt);
        let rest = match read == slot.read.len() {
            true => common(&slot.pending, &prompt[read..]),
            false => 0,
        };
        rest > 0 && read + rest >= cached().max(read) + WORTH_WAITING
    })
}

/// Logs an answer: its tokens and times, but not its text.
fn log(running: &Running, finish: &Finish, usage: &Usage) {
    let reason = match finish {
        Finish::EndToken => "end token",
        Finish::StopText(_) => "stop text",
        Finish::Length => "length",
    };
    let ms = |seconds: f64| (seconds * 1e4).round() / 10.0;
    tracing::info!(
        request = running.job.id,
        prompt = usage.prompt,
        cached = usage.cached,
        answer = usage.answer,
        drafted = usage.drafted,
        accepted = usage.accepted,
        queued_ms = ms(usage.queued_seconds),
        prompt_ms = ms(usage.prompt_seconds),
        answer_ms = ms(usage.answer_seconds),
        "answered: {reason}"
    );
}

fn usage(slot: &Slot<'_, Reply<'_>>, running: &Running) -> Usage {
    let [first, last] = slot.sink.times.unwrap_or([running.begun; 2]);
    let since = |a: Instant, b: Instant| b.saturating_duration_since(a);
    let seconds = |d: Duration| d.as_secs_f64();
    Usage {
        prompt: running.job.prompt.len(),
        cached: running.cached,
        answer: slot.answer.len(),
        drafted: slot.drafted,
        accepted: slot.accepted,
        prompt_seconds: seconds(since(running.begun, first)),
        answer_seconds: seconds(since(first, last)),
        queued_seconds: seconds(since(running.job.arrived, running.begun)),
    }
}
