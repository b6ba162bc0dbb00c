//! `tpc run`: a model's answer to a prompt, or a chat with it.
//!
//! - `prompt` makes token ids of a text, a conversation, or a list of ids;
//! - `sequence` is what the model has read, `generate` a token after the other;
//! - `stream` writes them as they come, `interrupt` ends them, `speed` says how fast it was.

mod generate;
mod interrupt;
mod prompt;
mod sampling;
mod sequence;
mod speed;
mod stream;

use std::io::{self, BufRead, IsTerminal, Write};
use std::path::PathBuf;
use std::time::Instant;

use tpc_core::placement::SplitMode;
use tpc_diag::{Diagnostic, codes};
use tpc_gguf::GgufFile;
use tpc_ir::DType;
use tpc_text::{ChatTemplate, Sampler, Tokenizer};

use crate::args::{Defaults, PlacementArgs};
use crate::engine::{self, EngineArgs, ExecutorKind, Loading};
use crate::input;
use crate::output::{self, Failure};
use generate::{Answer, Generator};
use interrupt::Interrupt;
use prompt::Prompter;
use sampling::SamplingArgs;
use sequence::Sequence;
use speed::Speed;

/// The tokens of an answer to a prompt that is no message, where `-n` says nothing: a text that is continued need not end.
const CONTINUED: usize = 128;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A GGUF file with its data, or any shard of one.
    model: PathBuf,
    /// The prompt [default: a chat; standard input, where that is no terminal].
    #[arg(long, short, value_name = "TEXT", allow_hyphen_values = true)]
    prompt: Option<String>,
    /// Token ids to continue, instead of a text; the answer is printed as ids.
    #[arg(
        long,
        value_name = "1,2,3",
        value_delimiter = ',',
        conflicts_with_all = ["prompt", "raw", "system_prompt"]
    )]
    tokens: Option<Vec<u32>>,
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
    #[command(flatten)]
    sampling: SamplingArgs,
    #[command(flatten)]
    engine: EngineArgs,
    #[command(flatten)]
    placement: PlacementArgs,
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

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let begun = Instant::now();
    let placement = engine::placement(
        &args.placement,
        Defaults {
            cache: DType::F16,
            split_mode: SplitMode::Auto,
        },
    )?;
    let file = engine::open(&args.model)?;
    let tokenizer = tokenizer(args, &file)?;
    let mut prompter = prompter(args, &file, tokenizer.as_ref())?;
    // A prompt that cannot be read is told before the model is loaded.
    let prompt = match chats(args) {
        true => None,
        false => Some(prompt(args, &mut prompter)?),
    };
    let compiled = engine::plan(&args.model, &file, &placement)?;
    let count = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
    let n_vocab = count(compiled.model.summary.n_vocab);
    let sampler = Sampler::new(args.sampling.settings(), n_vocab).map_err(Failure::usage)?;
    let interrupt = Interrupt::listen();
    let loading = Loading {
        name: &args.model,
        file: &file,
        compiled: &compiled,
        cells: usize::MAX,
        batch: count(placement.ubatch_size),
        outputs: 1,
        sequences: 1,
        executor: args.engine.executor(ExecutorKind::Cpu),
        threads: args.engine.threads(),
        profile: false,
    };
    let mut model = loading.load()?;
    let loaded = begun.elapsed();
    let mut running = Running {
        sequence: Sequence::new(model.as_mut(), loading.n_ctx(), loading.batch),
        generator: Generator {
            sampler,
            ends: tokenizer.as_ref().filter(|_| !args.ignore_eos),
            most: match (args.n_predict, prompter.is_conversation()) {
                (Some(Most(most)), _) => most,
                (None, true) => None,
                (None, false) => Some(CONTINUED),
            },
            interrupt: &interrupt,
        },
        speed: Speed::default(),
    };
    match prompt {
        Some(ids) => {
            running.answer(&prompter, &ids)?;
        }
        None => running.talk(&mut prompter)?,
    }
    let _ = writeln!(io::stderr().lock(), "{}", running.speed.line(loaded));
    Ok(())
}

/// Whether the prompts come from a person at a terminal.
fn chats(args: &Args) -> bool {
    args.tokens.is_none() && args.prompt.is_none() && io::stdin().is_terminal()
}

/// The file's tokenizer; for a list of ids none is needed.
fn tokenizer(args: &Args, file: &GgufFile) -> Result<Option<Tokenizer>, Failure> {
    let found = Tokenizer::from_gguf(file);
    if args.tokens.is_some() {
        return Ok(found.ok());
    }
    let found = found.map_err(Failure::usage)?;
    found.notes().iter().for_each(output::diagnostic);
    Ok(Some(found))
}

/// How texts become prompts: by the chat template, where the file has one or a chat is asked for.
fn prompter<'t>(
    args: &Args,
    file: &GgufFile,
    tokenizer: Option<&'t Tokenizer>,
) -> Result<Prompter<'t>, Failure> {
    let Some(tokenizer) = tokenizer.filter(|_| args.tokens.is_none()) else {
        return Ok(Prompter::Ids(args.tokens.clone().unwrap_or_default()));
    };
    let asked = args.system_prompt.is_some() || chats(args);
    match !args.raw && (asked || ChatTemplate::is_in(file)) {
        true => Prompter::of_messages(tokenizer, file, args.system_prompt.as_deref()),
        false => Ok(Prompter::of_texts(tokenizer)),
    }
}

/// The tokens of the only prompt.
fn prompt(args: &Args, prompter: &mut Prompter<'_>) -> Result<Vec<u32>, Failure> {
    let text = match args.tokens {
        Some(_) => String::new(),
        None => input::text(args.prompt.as_deref())?,
    };
    let ids = prompter.prompt(&text)?;
    if ids.is_empty() {
        let d = Diagnostic::new(&codes::COMMAND_LINE, "--prompt", "the prompt has no tokens");
        return Err(Failure::usage(
            d.help("a text, or ids such as `--tokens 1,2,3`"),
        ));
    }
    Ok(ids)
}

/// A model that answers.
struct Running<'a> {
    sequence: Sequence<'a>,
    generator: Generator<'a>,
    speed: Speed,
}

impl Running<'_> {
    /// Generates the answer to a prompt.
    fn answer(&mut self, prompter: &Prompter<'_>, ids: &[u32]) -> Result<Answer, Failure> {
        let stream = prompter.stream();
        let answer = self.generator.answer(&mut self.sequence, ids, stream)?;
        self.speed.count(&answer);
        Ok(answer)
    }

    /// Answers each line of a terminal, to its end.
    fn talk(&mut self, prompter: &mut Prompter<'_>) -> Result<(), Failure> {
        let mut line = String::new();
        loop {
            let _ = io::stderr().lock().write_all(b"> ");
            line.clear();
            let read = io::stdin().lock().read_line(&mut line);
            let refused = |e: io::Error| {
                let d = Diagnostic::new(&codes::FILE_ACCESS, "standard input", e.to_string());
                Failure::usage(d.help("give text in UTF-8, here or by -p TEXT"))
            };
            if read.map_err(refused)? == 0 {
                let _ = io::stderr().lock().write_all(b"\n");
                return Ok(());
            }
            let text = line.trim();
            if text.is_empty() {
                continue;
            }
            let ids = prompter.prompt(text)?;
            let answer = self.answer(prompter, &ids)?;
            if answer.reader_gone {
                return Ok(());
            }
            prompter.answered(&answer.tokens)?;
        }
    }
}
