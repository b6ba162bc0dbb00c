use tpc_diag::Diagnostic;
use tpc_rpc::Refusal;

use crate::codes;

fn refusal(d: Diagnostic) -> Refusal {
    Refusal::Device(Box::new(d))
}

pub(super) fn cannot_run(what: &str) -> Refusal {
    let message = format!("tpc cannot run the client's graph: {what}");
    refusal(Diagnostic::new(&codes::CANNOT_RUN, "client", message).help(
        "record the graph with `tpc rpc --capture DIR` and examine it with `tpc lint --graph`",
    ))
}
