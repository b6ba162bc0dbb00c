//! # tpc: the command line
//!
//! A module per subcommand reads its arguments, calls the libraries, and prints. Values of options are read while the arguments
//! are parsed (`args`, `values`). Results and diagnostics are printed by `output`, which knows terminals, widths and exit
//! statuses. Only this crate and `tpc-numeric` depend on both the compiler and the runtime.

pub mod advise;
mod args;
mod artefact;
mod bench;
mod beside;
pub mod catalogue;
mod check;
mod clients;
mod codes;
mod compile;
mod completions;
mod config;
mod devices;
mod dump;
mod engine_memory_args;
mod eval;
mod execution;
mod explain;
pub mod filetest;
mod foreign;
mod input;
mod inspect;
mod kernels;
mod lint;
mod man;
mod memory;
mod output;
mod plan;
mod progress;
mod rpc;
mod run;
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

/// Plans, proves and runs tensor-parallel inference of quantised GGUF models.
#[derive(Debug, Parser)]
#[command(name = "tpc", version, about, long_about = None, max_term_width = 100, args_override_self = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Plan the layouts of a model on devices: splits, memory, transfers, times.
    Plan(Box<plan::Args>),
    /// Find mistakes in a model file, a captured graph, options, or a command line of llama.cpp.
    Lint(lint::Args),
    /// Show the metadata, tensors, types and bytes of a GGUF file, or the content of an artefact.
    Inspect(inspect::Args),
    /// Prove that the devices' programs compute the model.
    Verify(verify::Args),
    /// List the built-in table of cards, and this machine's devices.
    Devices(devices::Args),
    /// Print the IR after a stage.
    Dump(dump::Args),
    /// Run tokens through a model; compare or write the logits.
    Eval(eval::Args),
    /// Compile a model for devices into an artefact that runs without planning.
    Compile(compile::Args),
    /// Check if an artefact runs here, or must be compiled again.
    Check(check::Args),
    /// Run a model: the answer to a prompt, or a chat.
    Run(run::Args),
    /// Time prompts and generation, in the format of llama-bench.
    Bench(bench::Args),
    /// Serve ggml's RPC protocol: run llama.cpp's graphs, or capture and lint them.
    Rpc(rpc::Args),
    /// Print the token ids of a text, or of a message in the model's chat format.
    Tokenize(tokenize::Args),
    /// Write a small model with random weights, or a header of any size.
    Synth(synth::Args),
    /// Explain a diagnostic code, or list all codes.
    Explain(explain::Args),
    /// Run file tests of passes.
    #[command(hide = true)]
    Filetest(filetest::Args),
    /// Print a completion script for a shell.
    Completions(completions::Args),
    /// Print the manual page, or write the pages of all commands.
    Man(man::Args),
}

/// Returns the placement of these options. Options that are not given default to caches of type `cache` and to `split_mode`.
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

/// Runs the program with these arguments, which begin with its own name, and returns its exit status.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let said = match foreign::translate(normalise(arguments), &Cli::command()) {
        Ok(said) => said,
        Err(d) => {
            output::diagnostic(&d);
            return ExitCode::from(2);
        }
    };
    let cli = match Cli::try_parse_from(said.arguments) {
        Ok(cli) => cli,
        Err(e) => {
            if e.use_stderr() {
                output::diagnostic(&usage(&e));
                return ExitCode::from(2);
            }
            // Help and version are answers, not errors.
            let _ = e.print();
            return ExitCode::SUCCESS;
        }
    };
    said.notes.iter().for_each(output::diagnostic);
    let result = match &cli.command {
        Command::Plan(a) => plan::run(a),
        Command::Lint(a) => lint::run(a),
        Command::Inspect(a) => inspect::run(a),
        Command::Verify(a) => verify::run(a),
        Command::Devices(a) => devices::run(a),
        Command::Dump(a) => dump::run(a),
        Command::Eval(a) => eval::run(a),
        Command::Compile(a) => compile::run(a),
        Command::Check(a) => check::run(a),
        Command::Run(a) => run::run(a),
        Command::Bench(a) => bench::run(a),
        Command::Rpc(a) => rpc::run(a),
        Command::Tokenize(a) => tokenize::run(a),
        Command::Synth(a) => synth::run(a),
        Command::Explain(a) => explain::run(a),
        Command::Filetest(a) => filetest::run(a),
        Command::Completions(a) => completions::run(a, Cli::command()),
        Command::Man(a) => man::run(a, Cli::command()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure {
            diagnostics,
            status,
        }) => {
            diagnostics.iter().for_each(output::diagnostic);
            ExitCode::from(status)
        }
    }
}

/// Returns the options of other programs, each with its effect in tpc, in Markdown.
pub fn foreign_options() -> Vec<[String; 2]> {
    foreign::rows(&Cli::command())
}

/// Checks a command line, which begins with the program's name, without running it.
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

/// Returns the diagnostic of a clap error. Values that tpc's own functions refuse already have a diagnostic.
fn usage(e: &clap::Error) -> Diagnostic {
    if let Some(d) = e.source().and_then(|s| s.downcast_ref::<Diagnostic>()) {
        return d.clone();
    }
    if e.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let d = Diagnostic::new(&common::COMMAND_LINE, "tpc", "a subcommand is missing");
        return d.help("`tpc --help` lists them");
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

/// Returns the text of a part of a clap error.
fn part(e: &clap::Error, kind: ContextKind) -> Option<String> {
    match e.get(kind)? {
        ContextValue::Strings(all) => Some(all.join(", ")),
        other => Some(other.to_string()),
    }
}

/// Returns the diagnostic of a value that is missing or not among the possible values.
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
        false => format!("`{value}` is no value of `{option}`"),
    };
    let help = match valid {
        Some(valid) => format!("{near}use one of {valid}"),
        None => format!("write {option}, a value in place of the name"),
    };
    Some(Diagnostic::new(&common::COMMAND_LINE, option, message).help(help))
}
