//! The engine's error type: diagnostics, and the kind that decides the exit status.

use tpc_diag::{Diagnostic, Severity, unusable};
use tpc_runtime::ExecError;

/// The kind of an error. The command line exits with status 1 for findings and 2 for usage errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// Findings of a plan, a comparison, or an execution.
    Findings,
    /// An unusable option, or an unreadable file.
    Usage,
}

/// The diagnostics of a failed operation.
#[derive(Debug)]
pub struct Error {
    /// The diagnostics, the most important one first.
    pub diagnostics: Vec<Diagnostic>,
    /// The kind of the error.
    pub kind: ErrorKind,
}

impl Error {
    /// Makes an error from findings of a plan, a comparison, or an execution.
    pub fn findings(diagnostics: Vec<Diagnostic>) -> Error {
        Error {
            diagnostics,
            kind: ErrorKind::Findings,
        }
    }

    /// Makes an error for an unusable option or an unreadable file.
    pub fn usage(d: impl Into<Diagnostic>) -> Error {
        Error {
            diagnostics: vec![d.into()],
            kind: ErrorKind::Usage,
        }
    }

    /// Makes an error from diagnostics of any kind. The result is a usage error if an option or the file is at fault.
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

/// Converts an executor's error into a diagnostic.
pub fn execution_diagnostic(e: &ExecError) -> Diagnostic {
    Diagnostic::new(e.code(), "execution", e.to_string()).help(e.help())
}
