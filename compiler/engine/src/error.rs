//! The error of the engine: diagnostics, and whether the user or the plan is at fault.

use tpc_diag::{Diagnostic, Severity, unusable};
use tpc_runtime::ExecError;

/// Who has to act on an error. The command line ends with status 1 or 2 by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// Findings of a plan, a comparison, or an execution.
    Findings,
    /// An unusable option, or an unreadable file.
    Usage,
}

/// Diagnostics that end an operation.
#[derive(Debug)]
pub struct Error {
    /// The diagnostics, the most important one first.
    pub diagnostics: Vec<Diagnostic>,
    /// Who has to act.
    pub kind: ErrorKind,
}

impl Error {
    /// Findings of a plan, a comparison, or an execution.
    pub fn findings(diagnostics: Vec<Diagnostic>) -> Error {
        Error {
            diagnostics,
            kind: ErrorKind::Findings,
        }
    }

    /// An unusable option, or an unreadable file.
    pub fn usage(d: impl Into<Diagnostic>) -> Error {
        Error {
            diagnostics: vec![d.into()],
            kind: ErrorKind::Usage,
        }
    }

    /// Diagnostics of any kind: a usage error if one of them concerns an option or the file itself.
    pub fn from_diagnostics(diagnostics: Vec<Diagnostic>) -> Error {
        let error = |d: &&Diagnostic| d.severity == Severity::Error;
        match diagnostics.iter().filter(error).any(|d| unusable(d.code)) {
            true => Error {
                diagnostics,
                kind: ErrorKind::Usage,
            },
            false => Error::findings(diagnostics),
        }
    }
}

impl From<&ExecError> for Error {
    fn from(e: &ExecError) -> Error {
        Error::findings(vec![execution_diagnostic(e)])
    }
}

impl From<ExecError> for Error {
    fn from(e: ExecError) -> Error {
        Error::from(&e)
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut lines = self.diagnostics.iter();
        if let Some(d) = lines.next() {
            write!(f, "{d} ({})", d.code.id)?;
        }
        lines.try_for_each(|d| write!(f, "\n{d} ({})", d.code.id))
    }
}

impl std::error::Error for Error {}

/// Returns the diagnostic of an executor's error.
pub fn execution_diagnostic(e: &ExecError) -> Diagnostic {
    Diagnostic::new(e.code(), "execution", e.to_string()).help(e.help())
}
