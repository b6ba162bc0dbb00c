//! Lints llama.cpp command lines: `tpc lint -- llama-server …` as a library function.

use std::ffi::OsString;

use clap::Parser;

use crate::foreign;
use crate::lint;
use crate::output::Failure;
use tpc_diag::Diagnostic;
use tpc_lint::Finding;
use tpc_lint::format::EngineFacts;

/// The findings in a llama.cpp command line, for one model.
#[derive(Clone, Debug)]
pub struct LineVerdict {
    /// The model's file, with the test's name if a benchmark has several tests.
    pub model: String,
    /// The planned device counts.
    pub devices: Vec<usize>,
    /// The engine's release, and the source of its data.
    pub engine: EngineFacts,
    /// The findings; each has a code, severity, message and cure.
    pub findings: Vec<Finding>,
    /// The equivalent `tpc plan` command.
    pub equivalent: Option<String>,
}

impl LineVerdict {
    /// True if the engine refuses the line, fails, or lacks memory.
    pub fn has_errors(&self) -> bool {
        let mut all = self.findings.iter();
        all.any(|f| f.diagnostic.severity == tpc_diag::Severity::Error)
    }
}

#[derive(Debug, Parser)]
#[command(no_binary_name = true, args_override_self = true)]
struct LintOnly {
    #[command(flatten)]
    args: lint::Args,
}

/// Lints a llama.cpp or ik_llama.cpp command line and returns one verdict, or one per test of a benchmark.
///
/// `line` has the words of the command; environment variables may precede the program. `machine` has the options before
/// the `--` of `tpc lint`, such as `--devices 2x3090` or `--engine llama.cpp@0.5.0`. Reads settings from `--config`, or
/// from the nearest `tpc.toml` in the folder or above. Prints no output.
///
/// # Errors
/// Returns the diagnostics of an unreadable line or option.
pub fn lint_line(line: &[String], machine: &[String]) -> Result<Vec<LineVerdict>, Vec<Diagnostic>> {
    let given = machine.iter().cloned().chain(["--".to_owned()]);
    let words: Vec<String> = given.chain(line.iter().cloned()).collect();
    let words = foreign::normalise(words.into_iter().map(OsString::from));
    let only = LintOnly::try_parse_from(words).map_err(|e| vec![crate::usage(&e)])?;
    let checked = lint::checked(&only.args).map_err(|f: Failure| f.diagnostics)?;
    let verdict = |one: lint::Checked| {
        let engine = one.engine.clone()?;
        Some(LineVerdict {
            model: one.path,
            devices: one.devices,
            engine,
            findings: one.findings,
            equivalent: one.equivalent,
        })
    };
    Ok(checked.into_iter().filter_map(verdict).collect())
}
