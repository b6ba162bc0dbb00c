//! Prints the findings in the chosen format.

use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;

use super::Format;
use crate::codes;
use crate::output::{self, Failure};
use tpc_core::report::PlanReport;
use tpc_diag::{Diagnostic, FormatVersion, Verdict, message};
use tpc_lint::format::{EngineFacts, LintReport, Summary, github, sarif};
use tpc_lint::{Accepted, Finding};

pub(crate) struct Checked {
    pub(crate) path: String,
    /// The file's name in the list of accepted findings.
    pub(crate) key: String,
    /// The accepted findings that no longer occur.
    pub(crate) stale: Vec<Accepted>,
    pub(crate) devices: Vec<usize>,
    pub(crate) findings: Vec<Finding>,
    /// The `tpc plan` command equivalent to a llama.cpp command.
    pub(crate) equivalent: Option<String>,
    /// The release of the command's program.
    pub(crate) engine: Option<EngineFacts>,
    /// The exit status, if a file or option is unusable.
    pub(crate) failed: Option<u8>,
}

/// The output of `tpc lint` and `tpc rpc` as JSON.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum Output<'a> {
    /// One file or command.
    One(LintReport<'a>),
    /// Several files, or captures with their plans.
    Several(Reports<'a>),
}

/// The JSON object for several files. Keys may be added, never changed.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "LintReports")]
pub(crate) struct Reports<'a> {
    /// Format version.
    tpc: FormatVersion,
    /// `error` if a finding is an error.
    verdict: Verdict,
    /// The number of findings of all files.
    summary: Summary,
    /// The files.
    files: Vec<LintReport<'a>>,
    /// The plans of captured graphs.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    plans: &'a [PlanReport],
}

impl Checked {
    pub(super) fn summary(&self) -> Summary {
        Summary::of(&self.findings)
    }

    /// Returns the exit status: of an unusable file or option, else 1 for errors.
    pub(super) fn status(&self) -> u8 {
        self.failed.unwrap_or(u8::from(self.summary().errors > 0))
    }

    fn report(&self) -> LintReport<'_> {
        let summary = self.summary();
        LintReport {
            tpc: FormatVersion,
            path: &self.path,
            verdict: summary.verdict(),
            devices: &self.devices,
            summary,
            findings: &self.findings,
            engine: self.engine.as_ref(),
            equivalent: self.equivalent.as_deref(),
            stale: &self.stale,
        }
    }

    fn line(&self) -> String {
        let same = self.equivalent.as_deref();
        let same = same.map_or_else(String::new, |e| format!("the same with tpc: {e}\n"));
        format!("{}: {}\n{same}", self.path, self.summary())
    }

    pub(super) fn diagnostics(&self) -> Vec<Diagnostic> {
        let open = self.findings.iter().filter(|f| !f.is_accepted());
        let shown = open.map(|f| Diagnostic {
            message: f.message().into(),
            help: match (&f.diagnostic.help, f.denied) {
                (help, false) => help.clone(),
                (Some(help), true) => Some(format!("{help}\n(an error by --deny)").into()),
                (None, true) => Some("(an error by --deny)".into()),
            },
            ..f.diagnostic.clone()
        });
        shown.chain(self.stale.iter().map(stale)).collect()
    }
}

/// Returns the diagnostic of an accepted finding that no longer occurs.
fn stale(accepted: &Accepted) -> Diagnostic {
    let Accepted {
        file, code, entity, ..
    } = accepted;
    let message = message!(
        "{} of {} in {} is accepted, but no longer occurs",
        code,
        entity,
        file
    );
    Diagnostic::new(&codes::STALE, entity.clone(), message).help(codes::STALE.cure)
}

fn total(all: &[Checked]) -> Summary {
    all.iter()
        .map(Checked::summary)
        .fold(Summary::default(), |a, b| Summary {
            errors: a.errors + b.errors,
            warnings: a.warnings + b.warnings,
            notes: a.notes + b.notes,
            accepted: a.accepted + b.accepted,
        })
}

/// Prints results on standard output. For several files as text, each file's findings follow the file's line on
/// standard error; totals come last. JSON output includes the plans. `baseline` is the file of accepted findings.
pub(super) fn print(
    format: Format,
    all: &[Checked],
    baseline: Option<&Path>,
    plans: &[PlanReport],
) -> Result<(), Failure> {
    match (format, all) {
        (Format::Text, all) => text(all, baseline),
        (Format::Json, [one]) => output::json(&Output::One(one.report())),
        (Format::Json, several) => {
            let summary = total(several);
            output::json(&Output::Several(Reports {
                tpc: FormatVersion,
                verdict: summary.verdict(),
                summary,
                files: several.iter().map(Checked::report).collect(),
                plans,
            }))
        }
        (Format::Sarif, all) => {
            let files: Vec<(&str, &[Finding])> = all
                .iter()
                .map(|c| (c.path.as_str(), c.findings.as_slice()))
                .collect();
            let absent: Vec<Accepted> = all.iter().flat_map(|c| c.stale.clone()).collect();
            output::json(&sarif(&files, &absent))
        }
        (Format::Github, all) => {
            let lines: String = all.iter().map(|c| github(&c.path, &c.findings)).collect();
            output::result(&lines)
        }
    }
}

fn text(all: &[Checked], baseline: Option<&Path>) -> Result<(), Failure> {
    match all {
        [one] => {
            if one.failed.is_none() {
                output::result(&one.line())?;
            }
        }
        several => {
            for one in several {
                output::result(&one.line())?;
                one.diagnostics().iter().for_each(output::diagnostic);
            }
            output::result(&format!("{} files: {}\n", several.len(), total(several)))?;
        }
    }
    match (baseline, total(all).accepted) {
        (Some(file), n) => output::result(&format!("{n} accepted by {}\n", file.display())),
        (None, _) => Ok(()),
    }
}
