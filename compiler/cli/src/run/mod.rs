//! `tpc run`: answers a prompt, or chats.
//!
//! - `asker` reads the prompts;
//! - `stream` writes an answer token by token, `interrupt` stops the answer, `speed` prints its speed;
//! - `chat` answers each of the `messages` typed at a terminal or piped;
//! - `embeddings` prints embeddings instead of answers;
//! - `kept` has the options for session files.
//!
//! `tpc_engine::generate` converts texts to prompts and generates.

mod args;
mod asker;
mod chat;
mod embedding_args;
mod embeddings;
mod finish;
mod interrupt;
mod kept;
mod messages;
mod speed;
mod stream;
mod terminal;

use std::io::{self, Write};
use std::time::{Duration, Instant};

use tpc_diag::Diagnostic;
use tpc_engine::generate::{Generator, PromptOrigin, Prompter, Slot, Speed, WhenFull, fits};
use tpc_engine::session_file::SessionFile;
use tpc_engine::{AnySession, Loader, PreparedModel};
use tpc_gguf::GgufFile;
use tpc_runtime::ExecError;
use tpc_text::{Sampler, Tokenizer};

use crate::execution::{self, Opened};
use crate::generation::{self, Draft, Wanted};
use crate::output::{self, Failure};
pub(super) use args::Args;
use args::MaxTokens;
use asker::{Asker, tokenizer};
use chat::Ended;
pub(crate) use embeddings::Output;
use finish::{StreamSlot, finish, finish_in};
use interrupt::{INTERRUPTED, Interrupt};
use stream::{Stream, To};

/// The default of `-n` for continued text, which may never end. Answers to messages have no limit.
const CONTINUED: usize = 128;

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    match args.embedding.embeddings {
        true => embeddings::run(args),
        false => generate(args),
    }
}

fn generate(args: &Args) -> Result<(), Failure> {
    let begun = Instant::now();
    let (opened, executor) = args.opened()?;
    let file = &opened.file;
    let tokenizer = vocabulary(args, &opened)?;
    let asker = Asker {
        args,
        file,
        tokenizer: tokenizer.as_ref(),
    };
    let kept = args.kept.read()?;
    let mut prompter = asker.prompter()?;
    let turns = kept.as_ref().and_then(|kept| kept.turns.as_deref());
    prompter.resume(turns.unwrap_or_default());
    let (mut prompts, ready) = (asker.prompts(&mut prompter)?, opened.plan()?);
    asker.in_vocabulary(ready.n_vocab)?;
    may_run(args, &ready)?;
    let batch = ready.ubatch.max(1);
    let (slots, wanted, outputs) = sizes(args, &opened, &ready, prompts.len())?;
    let interrupt = Interrupt::listen();
    let options = (args.engine).executor_options(executor, ready.n_devices())?;
    let loader = Loader {
        name: args.subject.path(),
        file,
        model: &ready,
        ctx_size: usize::MAX,
        batch,
        outputs,
        sequences: slots,
        executor: args.faults.apply(options)?,
    };
    let n_ctx = loader.sequence_ctx_size();
    let draft = Draft::open(args.draft_options(), &loader)?;
    execution::beyond_training(file, n_ctx).inspect(output::diagnostic);
    let begin = Begin {
        args,
        n_vocab: ready.n_vocab,
        tokenizer: tokenizer.as_ref(),
        most: most_tokens(args, &prompter),
    };
    // Check sampling settings before loading.
    let mut first = begin.slot(0, Stream::of(&prompter, To::Output))?;
    let mut session = execution::load(loader.clone(), &args.engine)?;
    let mut draft = draft.load(args.draft_options(), &loader)?;
    let loaded = begun.elapsed();
    let (when_full, unshifted) = when_full(args, &mut session)?;
    restore(args, kept.as_ref(), &mut session, &mut first, file)?;
    if let Some(kept) = kept.as_ref().filter(|_| args.kept.goes_on()) {
        go_on(kept, &first.read, &mut prompts, &mut prompter)?;
    }
    let stop = || interrupt.ends_work();
    let mut generator = Generator {
        when_full,
        unshifted,
        stop: &stop,
        ..Generator::new(&mut session, n_ctx, batch)
    };
    generation::add(&mut generator, &wanted, draft.as_mut());
    let ended = match prompts.as_slice() {
        [] => chat::talk(args, &mut generator, &mut first, &mut prompter, &interrupt),
        [one] => {
            let _work = interrupt.work();
            answer(&mut generator, &mut first, one, &mut prompter).map(|()| Ended::Done)
        }
        several => {
            let _work = interrupt.work();
            answers(&mut generator, &begin, &prompter, several, slots).map(|()| Ended::Done)
        }
    };
    let speed = generator.speed;
    let ended = ended.map_err(|failure| execution::explain_logits(failure, file));
    drop(generator);
    // Save a chat even after an error.
    if ended.is_ok() || prompts.is_empty() {
        args.kept.save(&session, &first, (file, prompter.turns()))?;
    }
    execution::busy(&session).inspect(output::diagnostic);
    end(ended, &speed, loaded)
}

/// Loads a saved session, after a check that the session can be saved.
fn restore(
    args: &Args,
    kept: Option<&SessionFile>,
    session: &mut AnySession<'_>,
    first: &mut StreamSlot<'_>,
    file: &GgufFile,
) -> Result<(), Failure> {
    args.kept.check(session)?;
    if let Some(kept) = kept {
        kept.load(session, first, file)?;
    }
    Ok(())
}

/// Puts the saved text in place of an empty prompt, or before the first line of a chat. `read` are the tokens in the
/// caches.
fn go_on(
    kept: &SessionFile,
    read: &[u32],
    prompts: &mut [Vec<u32>],
    prompter: &mut Prompter<'_>,
) -> Result<(), Failure> {
    let text = || [read, &kept.unread].concat();
    match prompts {
        [] => prompter.resume_text(&text()),
        [prompt] if prompt.is_empty() => *prompt = text(),
        _ => {}
    }
    if prompts.iter().any(Vec::is_empty) {
        let d = Diagnostic::new(
            &tpc_diag::codes::COMMAND_LINE,
            "--load",
            "the saved session is empty",
        );
        return Err(Failure::usage(d.help("give a text: -p TEXT")));
    }
    Ok(())
}

/// Returns the tokenizer like [`tokenizer`]. If the vocabulary is missing because the file is not a language model, the
/// plan's error names the cause.
fn vocabulary(args: &Args, opened: &Opened) -> Result<Option<Tokenizer>, Failure> {
    tokenizer(args, &opened.file).map_err(|failure| opened.plan().err().unwrap_or(failure))
}

/// Prints the speed, and returns the exit status. After a failure before the first token, prints only the error.
fn end(ended: Result<Ended, Failure>, speed: &Speed, loaded: Duration) -> Result<(), Failure> {
    if ended.is_ok() || speed.began() {
        let _ = writeln!(io::stderr().lock(), "{}", speed::line(speed, loaded));
    }
    status(ended?)
}

/// Returns the number of slots, the wanted drafts, and the tokens with logits per batch.
fn sizes(
    args: &Args,
    opened: &Opened,
    ready: &PreparedModel,
    prompts: usize,
) -> Result<(usize, Wanted, usize), Failure> {
    let outputs = ready.outputs.unwrap_or(usize::MAX).min(ready.ubatch.max(1));
    let slots = slots(opened, prompts, outputs / (ready.n_draft + 1));
    // The logits of a sequence: one row for the next token, and one per draft.
    let wanted = (args.drafts.wanted(&args.placement)?).at_most((outputs / slots).max(1) - 1);
    let rows = ready.n_draft.max(wanted.most()) + 1;
    Ok((slots, wanted, slots.saturating_mul(rows)))
}

fn slots(opened: &Opened, prompts: usize, most: usize) -> usize {
    opened.sequences().min(prompts).min(most).max(1)
}

/// Checks that the model generates token by token and, with `--context-shift`, that its states can forget single
/// tokens.
fn may_run(args: &Args, ready: &PreparedModel) -> Result<(), Failure> {
    if ready.embeds {
        let message = "the model computes embeddings, not text";
        let d = Diagnostic::new(&crate::codes::BOTH_WAYS, "model", message);
        return Err(Failure::usage(d.help("give --embeddings")));
    }
    if ready.bidirectional {
        return Err(not_token_by_token());
    }
    if !args.context_shift || !ready.recurrent {
        return Ok(());
    }
    Err(Failure::from(ExecError::CannotRewind {
        seq: 0,
        pos: 0,
        why: "recurrent states do not forget single tokens".to_owned(),
    }))
}

fn most_tokens(args: &Args, prompter: &Prompter<'_>) -> Option<usize> {
    match (args.n_predict, prompter.is_conversation()) {
        (Some(MaxTokens(most)), _) => most,
        (None, true) => None,
        (None, false) => Some(CONTINUED),
    }
}

const fn status(ended: Ended) -> Result<(), Failure> {
    match ended {
        Ended::Done => Ok(()),
        Ended::Interrupted => Err(Failure {
            diagnostics: Vec::new(),
            status: INTERRUPTED,
        }),
    }
}

fn not_token_by_token() -> Failure {
    let message = "the model generates by diffusion, not token by token";
    let d = Diagnostic::new(&crate::codes::BOTH_WAYS, "model", message);
    Failure::usage(
        d.help("`tpc eval` gives the logits of a whole sequence, and `tpc plan` its plan"),
    )
}

/// Returns the action for a full context, and the reason if the context cannot be shifted. With `--context-shift`, the
/// reason is an error.
fn when_full(
    args: &Args,
    session: &mut AnySession<'_>,
) -> Result<(WhenFull, Option<String>), Failure> {
    match (session.shift(0, 0, 0), args.context_shift) {
        (Ok(()), true) => Ok((WhenFull::Shift { keep: args.keep.0 }, None)),
        (Ok(()), false) => Ok((WhenFull::End, None)),
        (Err(e), true) => Err(Failure::from(e)),
        (Err(ExecError::CannotRewind { why, .. }), false) => Ok((WhenFull::End, Some(why))),
        (Err(e), false) => Ok((WhenFull::End, Some(e.to_string()))),
    }
}

struct Begin<'a, 't> {
    args: &'a Args,
    n_vocab: usize,
    tokenizer: Option<&'t Tokenizer>,
    /// The maximum number of tokens per answer; `None` if only the context limits it.
    most: Option<usize>,
}

impl<'t> Begin<'_, 't> {
    fn slot(&self, seq: u32, stream: Stream<'t>) -> Result<StreamSlot<'t>, Failure> {
        let sampler = Sampler::new(self.args.sampling.settings(), self.n_vocab);
        let mut slot = Slot::new(seq, sampler.map_err(Failure::usage)?, stream);
        slot.max_tokens = self.most.unwrap_or(usize::MAX);
        slot.ends = self.tokenizer.filter(|_| !self.args.ignore_eos);
        Ok(slot)
    }
}

fn answer<'t>(
    generator: &mut Generator<'_>,
    slot: &mut StreamSlot<'t>,
    prompt: &[u32],
    prompter: &mut Prompter<'t>,
) -> Result<(), Failure> {
    fits(prompt.len(), generator.n_ctx, PromptOrigin::Single)?;
    generator.rewind(slot, prompt)?;
    generator.answer(slot)?;
    finish(slot, generator)?;
    Ok(prompter.answered(&slot.answer)?)
}

/// Answers several prompts, `n` in parallel, and prints the answers in order.
fn answers<'t>(
    generator: &mut Generator<'_>,
    begin: &Begin<'_, 't>,
    prompter: &Prompter<'t>,
    prompts: &[Vec<u32>],
    n: usize,
) -> Result<(), Failure> {
    let n_ctx = generator.n_ctx;
    let unshifted = generator.unshifted.clone();
    for prompt in prompts {
        fits(prompt.len(), n_ctx, PromptOrigin::Single)?;
    }
    let start = |seq: usize, prompt: &[u32]| {
        let mut slot = begin.slot(seq as u32, Stream::of(prompter, To::Memory))?;
        slot.begin(prompt);
        Ok(slot)
    };
    let begun = prompts.iter().take(n).enumerate();
    let begun: Result<Vec<StreamSlot<'t>>, Failure> = begun.map(|(i, p)| start(i, p)).collect();
    let mut slots = begun?;
    // The index of each slot's prompt.
    let mut of: Vec<usize> = (0..n).collect();
    let mut waiting = n..prompts.len();
    let mut done: Vec<Option<Stream<'t>>> = prompts.iter().map(|_| None).collect();
    let mut printed = 0;
    generator.run(&mut slots, |model, slot| -> Result<(), Failure> {
        finish_in(slot, n_ctx, unshifted.as_deref())?;
        let at = slot.seq as usize;
        let stream = std::mem::replace(&mut slot.sink, Stream::of(prompter, To::Memory));
        done[of[at]] = Some(stream);
        while let Some(stream) = done.get_mut(printed).and_then(Option::as_mut) {
            output::result(&format!("[{}]\n", printed + 1))?;
            stream.print()?;
            printed += 1;
        }
        if let Some(next) = waiting.next() {
            model.remove_sequence(slot.seq);
            *slot = start(at, &prompts[next])?;
            of[at] = next;
        }
        Ok(())
    })
}
