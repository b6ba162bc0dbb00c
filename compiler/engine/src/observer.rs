//! Events of the engine, for a program that shows them.

use tpc_diag::Diagnostic;

/// Receives what the engine reports while it works. Every method does nothing unless it is implemented; `()` ignores all events.
pub trait Observer: Send + Sync {
    /// Receives a note or a warning.
    fn diagnostic(&self, _d: &Diagnostic) {}

    /// Receives a line about a decision, such as "made a program of 92 ops". A program shows it with `--verbose`.
    fn detail(&self, _line: &str) {}

    /// Receives that one more tensor of the file is loaded.
    fn tensor_loaded(&self) {}
}

impl Observer for () {}
