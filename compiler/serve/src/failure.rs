use tpc_diag::Diagnostic;
use tpc_engine::Error;

use crate::codes;

/// Returns the most important diagnostic of an error.
pub(crate) fn first(e: &Error) -> Diagnostic {
    let first = e.diagnostics.first().cloned();
    first.unwrap_or_else(|| {
        Diagnostic::new(
            &codes::FAILED,
            "model",
            "the model failed without a message",
        )
    })
}

/// Returns the error of requests that a shutdown ends.
pub(crate) fn shutdown() -> Diagnostic {
    Diagnostic::new(&codes::SHUTDOWN, "server", "the server is shutting down")
}
