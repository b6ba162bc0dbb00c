//! Events that the engine reports to the calling program.

use tpc_diag::Diagnostic;

/// A receiver of the engine's events. The default methods are empty, and `()` ignores all events.
pub trait Observer: Send + Sync {
    /// Receives a note or a warning.
    fn diagnostic(&self, _d: &Diagnostic) {}

    /// Receives a line about a decision, such as "made a program of 92 ops". A program shows it with `--verbose`.
    fn detail(&self, _line: &str) {}

    /// Counts one more loaded tensor.
    fn tensor_loaded(&self) {}
}

impl Observer for () {}
