//! `tpc perplexity`: scores a text as llama-perplexity does, and compares predictions with a base or between settings.
//!
//! - `setting` opens the model with the options of a setting;
//! - `evaluate` runs the text's windows;
//! - `score` sums a perplexity, `diverge` compares with a saved base, and `compare` compares settings;
//! - `report` formats a divergence, and `outputs` lists the JSON outputs.

mod args;
mod compare;
mod diverge;
mod evaluate;
mod outputs;
mod report;
mod score;
mod setting;

use std::fs::File;
use std::io::{self, BufReader};
use std::path::Path;

use tpc_diag::{Diagnostic, codes};
use tpc_engine::perplexity::{BaseHeader, BaseReader, BaseWriter, Limits, Window, windows};
use tpc_engine::{AnySession, check_tokens};
use tpc_text::{Markers, SpecialText, Tokenizer};

use crate::execution;
use crate::input;
use crate::output::{self, Failure};
use crate::progress::Progress;
pub(super) use args::Args;
use compare::Compare;
use diverge::Diverge;
use evaluate::{Task, Text, evaluate};
pub(crate) use outputs::Output;
use score::{Form, Score};
use setting::Setting;

type Base = BaseReader<BufReader<File>>;

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let base = match (&args.save_all_logits, args.kl_divergence) {
        (Some(path), true) => Some(open_base(path)?),
        _ => None,
    };
    let context = args.context(base.as_ref().map(|b| b.header.context))?;
    let names = [""]
        .into_iter()
        .chain(args.compare.iter().map(String::as_str));
    let settings = names.map(|name| Setting::open(args, name, context));
    let settings = settings.collect::<Result<Vec<Setting>, Failure>>()?;
    let Some(first) = settings.first() else {
        return Ok(());
    };
    let tokenizer = tokenizer(first)?;
    let (name, tokens) = match &base {
        Some(base) => (base_name(args), base.header.tokens.clone()),
        None => text(args, &tokenizer)?,
    };
    let n_vocab = first.ready.result_width;
    if let Some(base) = base.as_ref().filter(|b| b.header.n_vocab != n_vocab) {
        return Err(other_vocabulary(args, base.header.n_vocab, n_vocab));
    }
    check_tokens(tokens.iter().copied(), n_vocab, &name)?;
    let context = fitting(args, &settings, context, base.is_some())?;
    let windows = match &base {
        Some(base) => base_windows(base, args.most()),
        None => windows((&name, tokens.len()), context, args.form(), args.most())?,
    };
    let (mut sessions, limits, threads) = load(args, &settings, context)?;
    let text = Text {
        tokens: &tokens,
        windows: &windows,
        begin: tokenizer.begin(),
        limits,
        threads,
    };
    let model = args.subject.path().display().to_string();
    match base {
        Some(base) => {
            let mut task = Diverge::new(base, args.format);
            all(&mut sessions, &text, &mut task)?;
            task.print(&model)
        }
        None if settings.len() > 1 => {
            let names = settings.iter().map(|s| s.name.clone());
            let mut task = Compare::new(names.collect());
            all(&mut sessions, &text, &mut task)?;
            task.print((&model, context), args.format)
        }
        None => score(args, &mut sessions, &text, n_vocab),
    }
}

fn all(
    sessions: &mut [AnySession<'_>],
    text: &Text<'_>,
    task: &mut dyn Task,
) -> Result<(), Failure> {
    let progress = Progress::with_steps("scoring windows", text.windows.len());
    evaluate(sessions, text, task, &progress)
}

/// Scores the text, and saves the log-probabilities with `--save-all-logits`.
fn score(
    args: &Args,
    sessions: &mut [AnySession<'_>],
    text: &Text<'_>,
    n_vocab: usize,
) -> Result<(), Failure> {
    let form = Form::of(args.format, args.ppl_output_type);
    let model = args.subject.path().display().to_string();
    let Some(path) = &args.save_all_logits else {
        let mut task = Score::new(text.windows, form, None);
        all(sessions, text, &mut task)?;
        return task.print(&model);
    };
    let header = BaseHeader {
        context: text.windows.first().map_or(0, |w| w.len),
        n_vocab,
        tokens: text
            .windows
            .iter()
            .flat_map(|w| &text.tokens[w.start..w.start + w.len])
            .copied()
            .collect(),
    };
    let mut failure = None;
    let written = output::replace_by(path, &mut |out| {
        let base = BaseWriter::new(out, &header)?;
        let mut task = Score::new(text.windows, form, Some(base));
        let done = all(sessions, text, &mut task).and_then(|()| task.print(&model));
        done.map_err(|f| {
            failure = Some(f);
            io::Error::other("evaluation failed")
        })
    });
    match (failure, written) {
        (Some(failure), _) => Err(failure),
        (None, written) => written.map_err(|e| Failure::file(path, &e)),
    }
}

fn open_base(path: &Path) -> Result<Base, Failure> {
    let refused = |e: io::Error| Failure::file(path, &e);
    let file = File::open(path).map_err(refused)?;
    let metadata = file.metadata().map_err(refused)?;
    if !metadata.is_file() {
        return Err(Failure::file(path, &io::ErrorKind::InvalidInput.into()));
    }
    let name = path.display().to_string();
    Ok(BaseReader::new(
        BufReader::new(file),
        &name,
        metadata.len(),
    )?)
}

fn base_name(args: &Args) -> String {
    let path = args.save_all_logits.as_deref();
    path.unwrap_or(Path::new("")).display().to_string()
}

fn base_windows(base: &Base, most: usize) -> Vec<Window> {
    let context = base.header.context;
    let window = |i: usize| Window {
        start: i * context,
        len: context,
        first: context / 2,
        marked: true,
    };
    (0..base.header.chunks().min(most)).map(window).collect()
}

fn other_vocabulary(args: &Args, base: usize, model: usize) -> Failure {
    let message = format!("the base has a vocabulary of {base} tokens, the model one of {model}");
    let d = Diagnostic::new(&tpc_engine::perplexity::BASE_FILE, base_name(args), message);
    Failure::usage(d.help("give the base of a model with the same vocabulary"))
}

fn tokenizer(setting: &Setting) -> Result<Tokenizer, Failure> {
    let tokenizer = Tokenizer::from_gguf(&setting.opened.file).map_err(Failure::usage)?;
    tokenizer.notes().iter().for_each(output::diagnostic);
    Ok(tokenizer)
}

/// Returns the name of the text and its tokens, after the begin token.
fn text(args: &Args, tokenizer: &Tokenizer) -> Result<(String, Vec<u32>), Failure> {
    let (name, text) = match &args.file {
        Some(path) => (path.display().to_string(), input::text_of_file(path)?),
        None => ("text".to_owned(), input::text(args.prompt.as_deref())?),
    };
    if text.is_empty() {
        let d = Diagnostic::new(
            &tpc_engine::perplexity::SHORT_TEXT,
            name,
            "the text is empty",
        );
        return Err(Failure::usage(
            d.help("give a text of at least 1024 tokens: -f FILE"),
        ));
    }
    let _progress = Progress::start("reading the text's tokens");
    let mut tokens: Vec<u32> = tokenizer.begin().into_iter().collect();
    tokens.extend(tokenizer.encode(&text, SpecialText::Plain, Markers::Omit));
    Ok((name, tokens))
}

/// Returns the tokens per window. Without `-c`, a smaller artefact determines them.
fn fitting(
    args: &Args,
    settings: &[Setting],
    wanted: usize,
    is_base: bool,
) -> Result<usize, Failure> {
    let mut fits = wanted;
    for setting in settings {
        fits = fits.min(setting.loader(args, wanted)?.sequence_ctx_size());
    }
    if fits == wanted || (args.given_context()?.is_none() && !is_base && args.ppl_stride == 0) {
        return Ok(fits);
    }
    let message = format!("windows of {wanted} tokens do not fit the artefact's context of {fits}");
    let d = Diagnostic::new(&codes::COMMAND_LINE, "--ctx-size", message);
    Err(Failure::usage(d.help(format!(
        "compile the artefact with -c {wanted}, or leave out -c"
    ))))
}

/// Loads all settings. Returns the sessions, the limits of batches that all settings run, and the threads.
fn load<'a>(
    args: &'a Args,
    settings: &'a [Setting],
    context: usize,
) -> Result<(Vec<AnySession<'a>>, Limits, usize), Failure> {
    let mut limits = Limits {
        tokens: usize::MAX,
        rows: usize::MAX,
    };
    let mut threads = 1;
    let mut sessions = Vec::new();
    for setting in settings {
        let loader = setting.loader(args, context)?;
        limits.tokens = limits.tokens.min(loader.batch);
        limits.rows = limits.rows.min(loader.outputs);
        threads = threads.max(loader.executor.threads);
        if let Some(d) = execution::beyond_training(&setting.opened.file, context) {
            output::diagnostic(&d);
        }
        sessions.push(execution::load(loader, &args.engine)?);
    }
    Ok((sessions, limits, threads))
}
