use std::fmt;

use tpc_cuda::{DeviceInfo, DriverError};
use tpc_runtime::ExecError;

use crate::error::{Error, execution_diagnostic};

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The machine works as expected.
    Ok,
    /// tpc works, but slower or with less.
    Warning,
    /// tpc does not work.
    Failed,
    /// The check did not run.
    Skipped,
}

impl Status {
    /// Every status, the best first.
    pub const ALL: [Status; 4] = [Status::Ok, Status::Warning, Status::Failed, Status::Skipped];

    /// Returns the word in reports.
    pub const fn word(self) -> &'static str {
        match self {
            Status::Ok => "ok",
            Status::Warning => "warning",
            Status::Failed => "failed",
            Status::Skipped => "skipped",
        }
    }
}

/// A group of checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// The operating system.
    System,
    /// The driver, its devices and the compiler of kernels.
    Driver,
    /// Copies between the host and a device.
    Copies,
    /// Copies between devices.
    Peers,
    /// Kernels on random cases.
    Kernels,
    /// Small models.
    Models,
    /// Bandwidths and latencies.
    Measurements,
}

impl Section {
    /// All sections, in order.
    pub const ALL: [Section; 7] = [
        Section::System,
        Section::Driver,
        Section::Copies,
        Section::Peers,
        Section::Kernels,
        Section::Models,
        Section::Measurements,
    ];

    /// Returns the name.
    pub const fn name(self) -> &'static str {
        match self {
            Section::System => "system",
            Section::Driver => "driver",
            Section::Copies => "copies",
            Section::Peers => "peers",
            Section::Kernels => "kernels",
            Section::Models => "models",
            Section::Measurements => "measurements",
        }
    }
}

/// The finding of a check.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The status.
    pub status: Status,
    /// The finding in words, with its figures.
    pub text: String,
    /// The cure of a warning or failure.
    pub cure: Option<String>,
    /// Figures by name. The name ends with the unit.
    pub figures: Vec<(&'static str, f64)>,
}

impl Finding {
    fn new(status: Status, text: impl Into<String>, cure: Option<String>) -> Finding {
        Finding {
            status,
            text: text.into(),
            cure,
            figures: Vec::new(),
        }
    }

    pub(super) fn ok(text: impl Into<String>) -> Finding {
        Finding::new(Status::Ok, text, None)
    }

    pub(super) fn warning(text: impl Into<String>, cure: impl Into<String>) -> Finding {
        Finding::new(Status::Warning, text, Some(cure.into()))
    }

    pub(super) fn failed(text: impl Into<String>, cure: impl Into<String>) -> Finding {
        Finding::new(Status::Failed, text, Some(cure.into()))
    }

    pub(super) fn skipped(text: impl Into<String>) -> Finding {
        Finding::new(Status::Skipped, text, None)
    }

    /// Adds a figure.
    #[must_use]
    pub(super) fn with(mut self, name: &'static str, value: f64) -> Finding {
        self.figures.push((name, value));
        self
    }
}

/// An error that ends a check: it fails with this message.
#[derive(Debug)]
pub(super) struct CheckError {
    text: String,
    cure: String,
}

impl CheckError {
    pub(super) fn new(text: impl Into<String>, cure: impl Into<String>) -> CheckError {
        let cure: String = cure.into();
        CheckError {
            text: text.into(),
            cure: cure.trim_end_matches('.').to_owned(),
        }
    }

    /// Prepends the subject of the error.
    #[must_use]
    pub(super) fn at(self, subject: &str) -> CheckError {
        let text = format!("{subject}: {}", self.text);
        CheckError { text, ..self }
    }
}

impl From<CheckError> for Finding {
    fn from(e: CheckError) -> Finding {
        Finding::failed(e.text, e.cure)
    }
}

impl From<DriverError> for CheckError {
    fn from(e: DriverError) -> CheckError {
        let code = e.code();
        CheckError::new(format!("{e} ({})", code.id), code.cure)
    }
}

impl From<ExecError> for CheckError {
    fn from(e: ExecError) -> CheckError {
        let d = execution_diagnostic(&e);
        let help = d.help.as_ref().map(ToString::to_string);
        let cure = help.unwrap_or_else(|| d.code.cure.to_owned());
        CheckError::new(format!("{} ({})", d.message, d.code.id), cure)
    }
}

impl From<&tpc_diag::Diagnostic> for CheckError {
    fn from(d: &tpc_diag::Diagnostic) -> CheckError {
        let help = d.help.as_ref().map(ToString::to_string);
        let cure = help.unwrap_or_else(|| d.code.cure.to_owned());
        CheckError::new(format!("{d} ({})", d.code.id), cure)
    }
}

impl From<Error> for CheckError {
    fn from(e: Error) -> CheckError {
        match e.diagnostics.first() {
            Some(d) => CheckError::from(d),
            None => CheckError::new("the model has no plan", REPORT_BUG),
        }
    }
}

/// The cure of errors that tpc causes.
pub(super) const REPORT_BUG: &str =
    "this is a bug in tpc: report it with the output of `tpc doctor --format json`";

/// A check with its finding.
#[derive(Clone, Debug, PartialEq)]
pub struct Checked {
    /// The section.
    pub section: Section,
    /// The name of the check.
    pub check: &'static str,
    /// The numbers of the checked cards; empty for a check of the machine.
    pub cards: Vec<u32>,
    /// The check's name with its cards.
    pub name: String,
    /// The finding.
    pub finding: Finding,
}

/// All findings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// The checks, in order.
    pub checks: Vec<Checked>,
    /// The devices, each with its card number; empty if the driver did not open.
    pub devices: Vec<(u32, DeviceInfo)>,
}

/// The verdict of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// All checks are ok or skipped.
    Works,
    /// Some checks warn.
    Warns,
    /// Some checks failed.
    Fails,
}

impl Verdict {
    /// Every verdict, the best first.
    pub const ALL: [Verdict; 3] = [Verdict::Works, Verdict::Warns, Verdict::Fails];

    /// Returns the word in JSON.
    pub const fn word(self) -> &'static str {
        match self {
            Verdict::Works => "works",
            Verdict::Warns => "works with warnings",
            Verdict::Fails => "fails",
        }
    }
}

impl Report {
    /// Counts the checks with a status.
    pub fn count(&self, status: Status) -> usize {
        let has = |c: &&Checked| c.finding.status == status;
        self.checks.iter().filter(has).count()
    }

    /// Returns the verdict.
    pub fn verdict(&self) -> Verdict {
        match (self.count(Status::Failed), self.count(Status::Warning)) {
            (0, 0) => Verdict::Works,
            (0, _) => Verdict::Warns,
            _ => Verdict::Fails,
        }
    }
}

impl fmt::Display for Report {
    /// Writes the verdict.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let checks = |n: usize| match n {
            1 => "1 check".to_owned(),
            n => format!("{n} checks"),
        };
        let n = |status| self.count(status);
        match self.verdict() {
            Verdict::Fails => {
                let (failed, ok) = (n(Status::Failed), n(Status::Ok));
                write!(
                    f,
                    "tpc does not work on this machine: {} failed",
                    checks(failed)
                )?;
                write!(f, ", {ok} ok")?;
            }
            Verdict::Works | Verdict::Warns => {
                write!(f, "tpc works on this machine: {} ok", checks(n(Status::Ok)))?;
            }
        }
        for (status, word) in [(Status::Warning, "warnings"), (Status::Skipped, "skipped")] {
            if n(status) > 0 {
                write!(f, ", {} {word}", n(status))?;
            }
        }
        Ok(())
    }
}
