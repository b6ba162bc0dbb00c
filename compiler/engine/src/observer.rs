use tpc_diag::Diagnostic;

/// A receiver of the engine's events. `()` ignores them, as do the default methods.
pub trait Observer: Send + Sync {
    /// Receives a note or a warning.
    fn diagnostic(&self, _d: &Diagnostic) {}

    /// Receives a line about a decision, such as "made a program of 92 ops", for `--verbose`.
    fn detail(&self, _line: &str) {}

    /// Counts a loaded tensor.
    fn tensor_loaded(&self) {}
}

impl Observer for () {}
