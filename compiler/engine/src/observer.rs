use tpc_diag::Diagnostic;

/// Receives the engine's events. `()` and the default methods ignore them.
pub trait Observer: Send + Sync {
    /// Receives a note or a warning.
    fn diagnostic(&self, _d: &Diagnostic) {}

    /// Receives a line for `--verbose` about a decision, such as "made a program of 92 ops".
    fn detail(&self, _line: &str) {}

    /// Counts a loaded tensor.
    fn tensor_loaded(&self) {}
}

impl Observer for () {}
