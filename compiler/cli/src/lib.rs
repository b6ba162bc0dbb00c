//! The command line: one module per subcommand. Only this module joins the compiler with the runtime.

mod args;
pub mod catalogue;
mod completions;
mod dump;
mod eval;
mod explain;
mod inspect;
mod lint;
mod man;
mod output;
mod plan;
mod progress;
mod source;
mod synth;
mod values;
mod verify;

use std::error::Error;
use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::{ContextKind, ErrorKind};
use clap::{CommandFactory, Parser, Subcommand};

pub use args::normalise;
use output::Failure;
use tpc_core::placement::{Placement, SplitMode};
use tpc_diag::{Diagnostic, codes};
use tpc_ir::DType;

/// Plans, proves and runs tensor-parallel inference of quantised GGUF models.
#[derive(Debug, Parser)]
#[command(name = "tpc", version, about, long_about = None, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Plan how a model's tensors are divided among devices: layouts, memory, collectives, cost.
    Plan(plan::Args),
    /// Say what is wrong, or likely not meant, with a model file, a captured graph, a configuration and its plan.
    Lint(lint::Args),
    /// Say what is in a GGUF file: metadata, tensors, types, bytes.
    Inspect(inspect::Args),
    /// Prove that the devices' programs compute what the model says; with --numeric, also run a small model of the plan.
    Verify(verify::Args),
    /// Print the IR after a stage.
    Dump(dump::Args),
    /// Run tokens through a model and compare the logits with golden ones, or write them.
    Eval(eval::Args),
    /// Write a small model with random weights, or the header of a model of given sizes.
    Synth(synth::Args),
    /// Explain a diagnostic code, or list all codes.
    Explain(explain::Args),
    /// Print a script that completes commands and options in a shell.
    Completions(completions::Args),
    /// Print the manual page, or write the pages of all commands.
    Man(man::Args),
}

/// The placement that these options describe, with caches of type `cache` and in this split mode where they say nothing.
///
/// # Errors
/// The diagnostics that the program would print.
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

/// Runs the program with these arguments, the first being its own name.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let cli = match Cli::try_parse_from(normalise(arguments)) {
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
    let result = match &cli.command {
        Command::Plan(a) => plan::run(a),
        Command::Lint(a) => lint::run(a),
        Command::Inspect(a) => inspect::run(a),
        Command::Verify(a) => verify::run(a),
        Command::Dump(a) => dump::run(a),
        Command::Eval(a) => eval::run(a),
        Command::Synth(a) => synth::run(a),
        Command::Explain(a) => explain::run(a),
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

/// An error of the parser of arguments as a diagnostic. A value may have been refused by one already.
fn usage(e: &clap::Error) -> Diagnostic {
    if let Some(d) = e.source().and_then(|s| s.downcast_ref::<Diagnostic>()) {
        return d.clone();
    }
    if e.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let d = Diagnostic::new(&codes::COMMAND_LINE, "tpc", "a subcommand is missing");
        return d.help("`tpc --help` lists them");
    }
    let text = e.render().to_string();
    let mut paragraphs = text.split("\n\n").map(|p| {
        let words: Vec<&str> = p.split_whitespace().collect();
        words.join(" ")
    });
    let first = paragraphs.next().unwrap_or_default();
    let message = first.strip_prefix("error: ").unwrap_or(&first);
    let help: Vec<String> = paragraphs.filter(|p| !p.is_empty()).collect();
    let entity = [ContextKind::InvalidArg, ContextKind::InvalidSubcommand]
        .iter()
        .find_map(|&k| e.get(k))
        .map_or_else(|| "command line".to_owned(), ToString::to_string);
    Diagnostic::new(&codes::COMMAND_LINE, entity, message).help(help.join("\n"))
}
