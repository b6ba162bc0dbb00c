//! Refuses a client's graphs.

use tpc_diag::Diagnostic;
use tpc_rpc::Refusal;

use crate::codes;

fn refusal(d: Diagnostic) -> Refusal {
    Refusal::Device(Box::new(d))
}

/// Makes the refusal of a graph. `what` is the reason.
pub(super) fn cannot_run(what: &str) -> Refusal {
    let message = format!("the graph of a client cannot be run: {what}");
    refusal(Diagnostic::new(&codes::CANNOT_RUN, "client", message).help(
        "`tpc rpc --capture DIR` writes the graph down, and `tpc lint --graph` says more of it",
    ))
}
