//! Prints the findings in the chosen format.

use serde::Serialize;

use super::Format;
use crate::output::{self, Failure};
use tpc_core::report::PlanReport;
use tpc_diag::Diagnostic;
use tpc_lint::Finding;
use tpc_lint::format::{EngineFacts, LintReport, Summary, github, sarif};

pub(crate) struct Checked {
    pub(crate) path: String,
    pub(crate) devices: Vec<usize>,
    pub(crate) findings: Vec<Finding>,
    /// The `tpc plan` command equivalent to a llama.cpp command.
    pub(crate) equivalent: Option<String>,
    /// The release of the command's program.
    pub(crate) engine: Option<EngineFacts>,
    /// The exit status, if a file or option is unusable.
    pub(crate) failed: Option<u8>,
}

/// The JSON object for several files. Keys may be added, never changed.
#[derive(Debug, Serialize)]
struct Reports<'a> {
    tpc: u32,
    verdict: &'static str,
    summary: Summary,
    files: Vec<LintReport<'a>>,
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
            tpc: 1,
            path: &self.path,
            verdict: summary.verdict(),
            devices: &self.devices,
            summary,
            findings: &self.findings,
            engine: self.engine.as_ref(),
            equivalent: self.equivalent.as_deref(),
        }
    }

    fn line(&self) -> String {
        let same = self.equivalent.as_deref();
        let same = same.map_or_else(String::new, |e| format!("the same with tpc: {e}\n"));
        format!("{}: {}\n{same}", self.path, self.summary())
    }

    pub(super) fn diagnostics(&self) -> Vec<Diagnostic> {
        let shown = self.findings.iter().map(|f| Diagnostic {
            message: f.message().into(),
            help: match (&f.diagnostic.help, f.denied) {
                (help, false) => help.clone(),
                (Some(help), true) => Some(format!("{help}\n(an error by --deny)").into()),
                (None, true) => Some("(an error by --deny)".into()),
            },
            ..f.diagnostic.clone()
        });
        shown.collect()
    }
}

fn total(all: &[Checked]) -> Summary {
    all.iter()
        .map(Checked::summary)
        .fold(Summary::default(), |a, b| Summary {
            errors: a.errors + b.errors,
            warnings: a.warnings + b.warnings,
            notes: a.notes + b.notes,
        })
}

/// Prints results on standard output. For several files as text, each file's findings follow the file's line on
/// standard error; totals come last. JSON output includes the plans.
pub(super) fn print(format: Format, all: &[Checked], plans: &[PlanReport]) -> Result<(), Failure> {
    match (format, all) {
        (Format::Text, [one]) => match one.failed {
            None => output::result(&one.line()),
            Some(_) => Ok(()),
        },
        (Format::Text, several) => {
            for one in several {
                output::result(&one.line())?;
                one.diagnostics().iter().for_each(output::diagnostic);
            }
            output::result(&format!("{} files: {}\n", several.len(), total(several)))
        }
        (Format::Json, [one]) => output::json(&one.report()),
        (Format::Json, several) => {
            let summary = total(several);
            output::json(&Reports {
                tpc: 1,
                verdict: summary.verdict(),
                summary,
                files: several.iter().map(Checked::report).collect(),
                plans,
            })
        }
        (Format::Sarif, all) => {
            let files: Vec<(&str, &[Finding])> = all
                .iter()
                .map(|c| (c.path.as_str(), c.findings.as_slice()))
                .collect();
            output::json(&sarif(&files))
        }
        (Format::Github, all) => {
            let lines: String = all.iter().map(|c| github(&c.path, &c.findings)).collect();
            output::result(&lines)
        }
    }
}
