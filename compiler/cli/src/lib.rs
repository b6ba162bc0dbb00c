//! # tpc: the command line
//!
//! Each subcommand is a module. `args` and `values` parse option values. `output` prints results and diagnostics, and
//! sets the exit status. Only this crate and `tpc-numeric` depend on both the compiler and the runtime.

pub mod advise;
mod args;
mod artefact;
mod bench;
mod beside;
mod bisect;
pub mod catalogue;
mod check;
mod clients;
mod codes;
mod compile;
mod completions;
mod config;
mod devices;
mod doctor;
mod dump;
mod engine_memory_args;
mod eval;
mod execution;
mod explain;
pub mod filetest;
mod foreign;
mod generation;
mod input;
mod inspect;
mod kernels;
mod lint;
mod man;
mod memory;
mod models;
mod output;
mod perplexity;
mod plan;
mod progress;
mod ranks;
mod replay;
mod rpc;
mod run;
mod schema;
mod serve;
mod source;
mod synth;
mod tokenize;
mod values;
mod verify;

use std::error::Error;
use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser, Subcommand};

pub use codes::CODES;
pub use foreign::normalise;
use output::Failure;
use tpc_core::placement::{Placement, SplitMode};
use tpc_diag::{Diagnostic, codes as common};
use tpc_ir::DType;

/// tpc is a compiler for tensor-parallel inference of quantised GGUF models. It reads a model's header and splits the
/// model over two or more devices before any weight is loaded.
#[derive(Debug, Parser)]
#[command(name = "tpc", version, about, long_about = None, max_term_width = 100, args_override_self = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Plan a model on devices: splits, memory, transfers, times.
    Plan(Box<plan::Args>),
    /// Find mistakes in models, captured graphs, options and llama.cpp commands.
    Lint(lint::Args),
    /// Show the content of a GGUF file or an artefact.
    Inspect(inspect::Args),
    /// Prove that the devices' programs compute the model.
    Verify(verify::Args),
    /// Name the first op whose value differs between two captured graphs.
    Bisect(bisect::Args),
    /// List the built-in cards and this machine's devices.
    Devices(devices::Args),
    /// List the models in the caches of the hub, llama.cpp, Ollama and LM Studio.
    Models(Box<models::Args>),
    /// Check that tpc works on this machine.
    Doctor(doctor::Args),
    /// Print the IR after a stage.
    Dump(dump::Args),
    /// Run tokens through a model; compare or write the logits.
    Eval(eval::Args),
    /// Compile a model into an artefact that runs without planning.
    Compile(compile::Args),
    /// Check if an artefact runs here or needs a rebuild.
    Check(check::Args),
    /// Run a model: answer a prompt, or chat.
    Run(Box<run::Args>),
    /// Serve a model over HTTP with OpenAI's interface.
    Serve(Box<serve::Args>),
    /// Time prompts and generation, in the format of llama-bench.
    Bench(bench::Args),
    /// Score a text: perplexity, and divergence from a base or between settings.
    Perplexity(Box<perplexity::Args>),
    /// Run a failed CUDA launch alone, from a dump of --dump-on-fault.
    Replay(replay::Args),
    /// Serve ggml's RPC protocol: run or capture llama.cpp's graphs.
    Rpc(rpc::Args),
    /// Print the token ids of a text or chat message.
    Tokenize(tokenize::Args),
    /// Write a model with random weights, or only its header.
    Synth(synth::Args),
    /// Print the JSON Schema of a command's JSON output.
    Schema(schema::Args),
    /// Explain a diagnostic code, or list all codes.
    Explain(explain::Args),
    /// Run file tests of passes.
    #[command(hide = true)]
    Filetest(filetest::Args),
    /// Print a completion script for a shell.
    Completions(completions::Args),
    /// Print the manual page, or write all pages.
    Man(man::Args),
}

impl Command {
    /// Replaces names of models by their files or addresses; downloads missing models for commands that run them.
    fn resolve(&mut self) -> Result<(), Failure> {
        match self {
            Command::Plan(a) => a.resolve(),
            Command::Lint(a) => a.resolve(),
            Command::Inspect(a) => a.resolve(),
            Command::Verify(a) => a.resolve(),
            Command::Dump(a) => a.resolve(),
            Command::Eval(a) => a.resolve(),
            Command::Compile(a) => a.resolve(),
            Command::Run(a) => a.resolve(),
            Command::Serve(a) => a.resolve(),
            Command::Bench(a) => a.resolve(),
            Command::Perplexity(a) => a.resolve(),
            Command::Tokenize(a) => a.resolve(),
            _ => Ok(()),
        }
    }

    /// Returns the options of a command that runs a model, which several processes can do together.
    fn of_ranks(&self) -> Option<execution::RankOptions<'_>> {
        match self {
            Command::Eval(a) => Some(a.of_ranks()),
            Command::Run(a) => Some(a.of_ranks()),
            Command::Serve(a) => Some(a.of_ranks()),
            Command::Bench(a) => Some(a.of_ranks()),
            Command::Perplexity(a) => Some(a.of_ranks()),
            _ => None,
        }
    }

    /// Runs the command; in several processes, on rank 0.
    fn run_on_ranks(&mut self) -> Result<(), Failure> {
        if self.of_ranks().is_none() {
            // One process of a job prints.
            return match ranks::is_silent() {
                true => Ok(()),
                false => self.resolve().and_then(|()| self.run()),
            };
        }
        ranks::start()?;
        self.resolve()?;
        match (self.of_ranks(), ranks::followed()) {
            (Some(options), Some(ranks)) => execution::follow(ranks, options),
            _ => self.run(),
        }
    }

    fn run(&self) -> Result<(), Failure> {
        match self {
            Command::Plan(a) => plan::run(a),
            Command::Lint(a) => lint::run(a),
            Command::Inspect(a) => inspect::run(a),
            Command::Verify(a) => verify::run(a),
            Command::Bisect(a) => bisect::run(a),
            Command::Devices(a) => devices::run(a),
            Command::Models(a) => models::run(a),
            Command::Doctor(a) => doctor::run(a),
            Command::Dump(a) => dump::run(a),
            Command::Eval(a) => eval::run(a),
            Command::Compile(a) => compile::run(a),
            Command::Check(a) => check::run(a),
            Command::Run(a) => run::run(a),
            Command::Serve(a) => serve::run(a),
            Command::Bench(a) => bench::run(a),
            Command::Perplexity(a) => perplexity::run(a),
            Command::Replay(a) => replay::run(a),
            Command::Rpc(a) => rpc::run(a),
            Command::Tokenize(a) => tokenize::run(a),
            Command::Synth(a) => synth::run(a),
            Command::Schema(a) => schema::run(a),
            Command::Explain(a) => explain::run(a),
            Command::Filetest(a) => filetest::run(a),
            Command::Completions(a) => completions::run(a, Cli::command()),
            Command::Man(a) => man::run(a, Cli::command()),
        }
    }
}

/// Returns the placement of these options. `cache` and `split_mode` are the defaults.
///
/// # Errors
/// Returns the diagnostics that the program would print.
pub fn placement(
    options: &[String],
    cache: DType,
    split_mode: SplitMode,
) -> Result<Placement, Vec<Diagnostic>> {
    let options = args::PlacementArgs::read(options).map_err(|f| f.diagnostics)?;
    options
        .placement(args::Defaults { cache, split_mode })
        .map_err(|f| f.diagnostics)
}

/// Runs the program and returns its exit status. The first argument is the program's name.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let said = match foreign::translate(normalise(arguments), &Cli::command()) {
        Ok(said) => said,
        Err(d) => {
            if !ranks::is_silent() {
                output::diagnostic(&d);
            }
            return ExitCode::from(2);
        }
    };
    let mut cli = match Cli::try_parse_from(&said.arguments) {
        Ok(cli) => cli,
        Err(e) if ranks::is_silent() => {
            return ExitCode::from(if e.use_stderr() { 2 } else { 0 });
        }
        Err(e) => {
            if e.use_stderr() {
                output::diagnostic(&usage(&e));
                return ExitCode::from(2);
            }
            let _ = e.print();
            return ExitCode::SUCCESS;
        }
    };
    if !ranks::is_silent() {
        said.notes.iter().for_each(output::diagnostic);
    }
    let result = cli.command.run_on_ranks();
    ranks::finish(result.as_ref().err());
    match result {
        Err(Failure { status, .. }) if ranks::is_silent() => ExitCode::from(status),
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure {
            mut diagnostics,
            status,
        }) => {
            execution::suggest_dump(&mut diagnostics, &said.arguments);
            let news = diagnostics.iter().filter(|d| ranks::is_news(d));
            news.for_each(output::diagnostic);
            if diagnostics.iter().any(|d| *d.code == tpc_cuda::HANG) {
                output::leave(status);
            }
            ExitCode::from(status)
        }
    }
}

/// Returns the options of other programs, each with its effect in tpc, in Markdown.
pub fn foreign_options() -> Vec<[String; 2]> {
    foreign::rows(&Cli::command())
}

/// Checks a command line without running it. The first word is the program's name.
///
/// # Errors
/// Returns the diagnostic that the program would print.
pub fn check_usage(arguments: impl IntoIterator<Item = OsString>) -> Result<(), Box<Diagnostic>> {
    let said = foreign::translate(normalise(arguments), &Cli::command())?;
    match Cli::try_parse_from(said.arguments) {
        Err(e) if e.use_stderr() => Err(Box::new(usage(&e))),
        _ => Ok(()),
    }
}

/// Returns the diagnostic of a clap error. If tpc's own parser refused a value, returns the parser's diagnostic.
fn usage(e: &clap::Error) -> Diagnostic {
    if let Some(d) = e.source().and_then(|s| s.downcast_ref::<Diagnostic>()) {
        return d.clone();
    }
    if e.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let d = Diagnostic::new(&common::COMMAND_LINE, "tpc", "a subcommand is missing");
        return d.help("`tpc --help` lists the subcommands");
    }
    if let Some(d) = wrong_value(e) {
        return d;
    }
    let text = e.render().to_string();
    let mut paragraphs = text.split("\n\n").map(|p| {
        let words: Vec<&str> = p.split_whitespace().collect();
        words.join(" ")
    });
    let first = paragraphs.next().unwrap_or_default();
    let message = first.strip_prefix("error: ").unwrap_or(&first);
    let help = paragraphs.filter(|p| !p.is_empty());
    let help: Vec<String> = help
        .map(|p| p.strip_prefix("tip: ").unwrap_or(&p).to_owned())
        .collect();
    let entity = [ContextKind::InvalidArg, ContextKind::InvalidSubcommand]
        .iter()
        .find_map(|&k| e.get(k))
        .map_or_else(|| "command line".to_owned(), ToString::to_string);
    Diagnostic::new(&common::COMMAND_LINE, entity, message).help(help.join("\n"))
}

fn part(e: &clap::Error, kind: ContextKind) -> Option<String> {
    match e.get(kind)? {
        ContextValue::Strings(all) => Some(all.join(", ")),
        other => Some(other.to_string()),
    }
}

fn wrong_value(e: &clap::Error) -> Option<Diagnostic> {
    if e.kind() != ErrorKind::InvalidValue {
        return None;
    }
    let option = part(e, ContextKind::InvalidArg)?;
    let value = part(e, ContextKind::InvalidValue).unwrap_or_default();
    let valid = part(e, ContextKind::ValidValue).filter(|v| !v.is_empty());
    let near = part(e, ContextKind::SuggestedValue);
    let near = near.map_or_else(String::new, |n| format!("did you mean {n}? "));
    let message = match value.is_empty() {
        true => format!("`{option}` needs a value"),
        false => format!("`{value}` is not a value of `{option}`"),
    };
    let help = match valid {
        Some(valid) => format!("{near}use one of {valid}"),
        None => format!("write {option} with a value in place of the name"),
    };
    Some(Diagnostic::new(&common::COMMAND_LINE, option, message).help(help))
}
