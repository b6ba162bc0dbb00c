//! `tpc run`: a model's answer to a prompt, or a chat with it.
//!
//! - an `asker` finds the prompts of the command line;
//! - `stream` writes answers as they come, `interrupt` ends them, `speed` prints how fast they came;
//! - a `chat` answers the lines of a terminal;
//! - `kept` has the options for sessions in files.
//!
//! The engine (`tpc_engine::generate`) makes prompts and generates.

mod asker;
mod chat;
mod interrupt;
mod kept;
mod sampling;
mod speed;
mod stream;
mod terminal;

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use tpc_core::placement::SplitMode;
use tpc_diag::{Diagnostic, codes};
use tpc_engine::generate::{
    Buffers, End, Generator, PromptOrigin, Prompter, Slot, Speed, WhenFull, context_full, fits,
};
use tpc_engine::{AnySession, ExecutorKind, Loader, PreparedModel};
use tpc_ir::DType;
use tpc_runtime::ExecError;
use tpc_text::{Sampler, Tokenizer};

use crate::args::{Defaults, PlacementArgs};
use crate::execution::{self, ExecutionArgs, Opened, SubjectArgs};
use crate::output::{self, Failure};
use asker::{Asker, tokenizer};
use chat::Ended;
use interrupt::{INTERRUPTED, Interrupt};
use kept::KeptArgs;
use sampling::SamplingArgs;
use stream::{Stream, To};

/// The tokens of an answer to a prompt that is no message, where `-n` says nothing: a text that is continued need not end.
const CONTINUED: usize = 128;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    subject: SubjectArgs,
    /// The prompt [default: a chat; standard input, where that is no terminal]; repeatable, each with its own answer.
    #[arg(long, short, value_name = "TEXT", allow_hyphen_values = true)]
    prompt: Vec<String>,
    /// A file with a prompt per line, each with its own answer; `-np` of them are continued side by side.
    #[arg(long, value_name = "FILE", conflicts_with = "prompt")]
    prompts: Option<PathBuf>,
    /// A file with the prompt.
    #[arg(long, short, value_name = "FILE", conflicts_with_all = ["prompt", "prompts"])]
    file: Option<PathBuf>,
    /// In -p, \n, \t, \r, \\, \', \" and \xHH are the characters that they stand for; without it they are themselves.
    #[arg(long, short)]
    escape: bool,
    /// In -p, a backslash is itself, as it is without --escape.
    #[arg(long, conflicts_with = "escape")]
    no_escape: bool,
    /// Token ids to continue, instead of a text; the answer is printed as ids. Repeatable, each with its own answer.
    #[arg(
        long,
        value_name = "1,2,3",
        value_parser = token_ids,
        allow_hyphen_values = true,
        conflicts_with_all = ["prompt", "prompts", "file", "raw", "system_prompt"]
    )]
    tokens: Vec<TokenIds>,
    /// The most tokens of an answer; -1 is as many as fit [default: 128; as many as fit of an answer to a message].
    #[arg(
        long,
        short = 'n',
        visible_alias = "predict",
        value_name = "N",
        value_parser = n_predict,
        allow_hyphen_values = true
    )]
    n_predict: Option<Most>,
    /// What the model is told before the first message.
    #[arg(
        long,
        value_name = "TEXT",
        allow_hyphen_values = true,
        conflicts_with = "raw"
    )]
    system_prompt: Option<String>,
    /// Continue the text as it is, without the file's chat template.
    #[arg(long, visible_alias = "no-chat", alias = "no-conversation")]
    raw: bool,
    /// Go on after tokens that end an answer.
    #[arg(long)]
    ignore_eos: bool,
    /// Where the context is full, forget the older half of the text, and go on.
    #[arg(long)]
    context_shift: bool,
    /// The first tokens that a context shift keeps; -1 is the prompt.
    #[arg(
        long,
        value_name = "N",
        default_value = "0",
        value_parser = keep,
        allow_hyphen_values = true
    )]
    keep: Keep,
    #[command(flatten)]
    kept: KeptArgs,
    #[command(flatten)]
    sampling: SamplingArgs,
    #[command(flatten)]
    engine: ExecutionArgs,
    #[command(flatten)]
    placement: PlacementArgs,
}

/// A list of token ids.
#[derive(Clone, Debug, PartialEq, Eq)]
struct TokenIds(Vec<u32>);

/// Reads a list of token ids.
fn token_ids(text: &str) -> Result<TokenIds, Diagnostic> {
    let ids: Result<Vec<u32>, _> = text.split(',').map(|id| id.trim().parse()).collect();
    ids.map(TokenIds).map_err(|_| {
        let message = format!("--tokens must be token ids, not `{text}`");
        let d = Diagnostic::new(&codes::COMMAND_LINE, "--tokens", message);
        d.help("such as 1,2,3")
    })
}

/// The most tokens of an answer; `None` for as many as fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Most(Option<usize>);

/// Reads the most tokens of an answer.
fn n_predict(text: &str) -> Result<Most, Diagnostic> {
    match text.parse::<i64>() {
        Ok(-2 | -1) => Ok(Most(None)),
        Ok(n) if n >= 0 => Ok(Most(usize::try_from(n).ok())),
        _ => {
            let message = format!("--n-predict must be a number of tokens, not `{text}`");
            let d = Diagnostic::new(&codes::COMMAND_LINE, "--n-predict", message);
            Err(d.help("such as 128; -1 is as many as fit the context"))
        }
    }
}

/// The first tokens that stay; `None` for those of the prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Keep(Option<usize>);

/// Reads the number of tokens that a context shift keeps.
fn keep(text: &str) -> Result<Keep, Diagnostic> {
    match text.parse::<i64>() {
        Ok(-1) => Ok(Keep(None)),
        Ok(n) if n >= 0 => Ok(Keep(usize::try_from(n).ok())),
        _ => {
            let message = format!("--keep must be a number of tokens, not `{text}`");
            let d = Diagnostic::new(&codes::COMMAND_LINE, "--keep", message);
            Err(d.help("such as 4; -1 is the prompt"))
        }
    }
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let begun = Instant::now();
    let (opened, executor) = opened(args)?;
    let file = &opened.file;
    let tokenizer = tokenizer(args, file)?;
    let asker = Asker {
        args,
        file,
        tokenizer: tokenizer.as_ref(),
    };
    // What cannot be read, or written at the end, is told before the model is loaded.
    let kept = args.kept.read()?;
    let mut prompter = asker.prompter()?;
    let turns = kept.as_ref().and_then(|kept| kept.turns.as_deref());
    prompter.resume(turns.unwrap_or_default());
    let (prompts, ready) = (asker.prompts(&mut prompter)?, opened.plan()?);
    asker.in_vocabulary(ready.n_vocab)?;
    may_run(args, &ready)?;
    let batch = ready.ubatch.max(1);
    // Of each sequence the next token and what was drafted have logits.
    let rows = ready.n_draft + 1;
    let most = ready.outputs.map_or(batch, |n| n / rows).min(batch);
    let slots = slots(&opened, prompts.len(), most);
    let interrupt = Interrupt::listen();
    let loader = Loader {
        name: args.subject.path(),
        file,
        model: &ready,
        ctx_size: usize::MAX,
        batch,
        outputs: slots.saturating_mul(rows),
        sequences: slots,
        executor: (args.engine).executor_options(executor, ready.n_devices())?,
    };
    let n_ctx = loader.sequence_ctx_size();
    let long = execution::beyond_training(file, n_ctx);
    long.iter().for_each(output::diagnostic);
    let begin = Begin {
        args,
        n_vocab: ready.n_vocab,
        tokenizer: tokenizer.as_ref(),
        most: most_tokens(args, &prompter),
    };
    // Settings that make no sense are told before, too.
    let mut first = begin.slot(0, Stream::of(&prompter, To::Output))?;
    let mut session = execution::load(loader, &args.engine)?;
    let loaded = begun.elapsed();
    let (when_full, unshifted) = when_full(args, &mut session)?;
    args.kept.check(&session)?;
    if let Some(kept) = kept {
        kept.load(&mut session, &mut first, file)?;
    }
    let stop = || interrupt.ends_work();
    let mut generator = Generator {
        model: &mut session,
        n_ctx,
        batch,
        when_full,
        unshifted,
        stop: &stop,
        speed: Speed::default(),
        buffers: Buffers::default(),
    };
    if prompts.is_empty() && args.kept.goes_on() {
        prompter.resume_text(&first.read);
    }
    let (generated, interrupt) = (&mut generator, &interrupt);
    let ended = match prompts.as_slice() {
        [] => chat::talk(generated, &mut first, &mut prompter, interrupt),
        [one] => {
            let _work = interrupt.work();
            answer(generated, &mut first, one, &mut prompter).map(|()| Ended::Done)
        }
        several => {
            let _work = interrupt.work();
            answers(generated, &begin, &prompter, several, slots).map(|()| Ended::Done)
        }
    };
    let speed = generator.speed;
    // What was said in a chat is saved, however it ended.
    if ended.is_ok() || prompts.is_empty() {
        args.kept.save(&session, &first, (file, prompter.turns()))?;
    }
    end(ended, &speed, loaded)
}

/// Says how fast it was, and how it ended. Where nothing was read there is nothing to say but what went wrong.
fn end(ended: Result<Ended, Failure>, speed: &Speed, loaded: Duration) -> Result<(), Failure> {
    if ended.is_ok() || speed.began() {
        let _ = writeln!(io::stderr().lock(), "{}", speed::line(speed, loaded));
    }
    status(ended?)
}

/// The sequences that are continued side by side.
fn slots(opened: &Opened, prompts: usize, most: usize) -> usize {
    opened.sequences().min(prompts).min(most).max(1)
}

/// What is run, and what runs it.
fn opened(args: &Args) -> Result<(Opened, ExecutorKind), Failure> {
    let defaults = Defaults {
        cache: DType::F16,
        split_mode: SplitMode::Auto,
    };
    let executor = (args.engine).executor(&args.placement, ExecutorKind::Cpu);
    let opened = (args.subject).open(&args.placement, || {
        execution::placement(&args.placement, defaults, executor)
    })?;
    let executor = opened.executor(&args.engine, executor);
    Ok((opened, executor))
}

/// Fails where the model does not generate, or forgets no single tokens and that is asked for.
fn may_run(args: &Args, ready: &PreparedModel) -> Result<(), Failure> {
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

/// The most tokens of an answer.
fn most_tokens(args: &Args, prompter: &Prompter<'_>) -> Option<usize> {
    match (args.n_predict, prompter.is_conversation()) {
        (Some(Most(most)), _) => most,
        (None, true) => None,
        (None, false) => Some(CONTINUED),
    }
}

/// The end of the command.
const fn status(ended: Ended) -> Result<(), Failure> {
    match ended {
        Ended::Done => Ok(()),
        Ended::Interrupted => Err(Failure {
            diagnostics: Vec::new(),
            status: INTERRUPTED,
        }),
    }
}

/// The failure of a model of diffusion: TPC0428.
fn not_token_by_token() -> Failure {
    let message = "the model generates by diffusion, not token by token";
    let d = Diagnostic::new(&crate::codes::BOTH_WAYS, "model", message);
    Failure::usage(
        d.help("`tpc eval` gives the logits of a whole sequence, and `tpc plan` its plan"),
    )
}

/// What is done when the context is full, and why it cannot be shifted, if so. A model that cannot shift it says so at once,
/// and not when it is full.
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

/// How slots begin.
struct Begin<'a, 't> {
    args: &'a Args,
    n_vocab: usize,
    tokenizer: Option<&'t Tokenizer>,
    /// The most tokens of an answer; `None` for as many as fit.
    most: Option<usize>,
}

impl<'t> Begin<'_, 't> {
    /// Makes a slot without tokens.
    fn slot(&self, seq: u32, stream: Stream<'t>) -> Result<StreamSlot<'t>, Failure> {
        let sampler = Sampler::new(self.args.sampling.settings(), self.n_vocab);
        let mut slot = Slot::new(seq, sampler.map_err(Failure::usage)?, stream);
        slot.max_tokens = self.most.unwrap_or(usize::MAX);
        slot.ends = self.tokenizer.filter(|_| !self.args.ignore_eos);
        Ok(slot)
    }
}

/// A slot whose answer is printed.
type StreamSlot<'t> = Slot<'t, Stream<'t>>;

/// Generates the answer to a prompt.
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

/// Ends the answer of a slot.
fn finish(slot: &mut StreamSlot<'_>, generator: &Generator<'_>) -> Result<(), Failure> {
    finished(slot, generator.n_ctx, generator.unshifted.as_deref())
}

/// The same, with why the context cannot be shifted.
fn finished(
    slot: &mut StreamSlot<'_>,
    n_ctx: usize,
    unshifted: Option<&str>,
) -> Result<(), Failure> {
    slot.sink.finish()?;
    if slot.end == Some(End::Full) {
        output::diagnostic(&context_full(n_ctx, unshifted));
    }
    Ok(())
}

/// Generates the answers to several prompts, `n` of them side by side, and prints each when those before it are printed.
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
    // The prompt that each slot answers.
    let mut of: Vec<usize> = (0..n).collect();
    let mut waiting = n..prompts.len();
    let mut done: Vec<Option<Stream<'t>>> = prompts.iter().map(|_| None).collect();
    let mut printed = 0;
    generator.run(&mut slots, |model, slot| -> Result<(), Failure> {
        finished(slot, n_ctx, unshifted.as_deref())?;
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
