use tpc_diag::{Diagnostic, Severity, unusable};
use tpc_runtime::ExecError;

/// The kind of an error. The exit status is 1 for findings and 2 for usage errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// Findings of a plan, comparison or execution.
    Findings,
    /// An unusable option or unreadable file.
    Usage,
}

/// The diagnostics of a failed operation.
#[derive(Debug)]
pub struct Error {
    /// The diagnostics, the most important first.
    pub diagnostics: Vec<Diagnostic>,
    /// The kind of the error.
    pub kind: ErrorKind,
}

impl Error {
    /// Creates an error of findings.
    pub fn findings(diagnostics: Vec<Diagnostic>) -> Error {
        Error {
            diagnostics,
            kind: ErrorKind::Findings,
        }
    }

    /// Creates a usage error.
    pub fn usage(d: impl Into<Diagnostic>) -> Error {
        Error {
            diagnostics: vec![d.into()],
            kind: ErrorKind::Usage,
        }
    }

    /// Creates an error from diagnostics: a usage error if an option or the file is wrong.
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
