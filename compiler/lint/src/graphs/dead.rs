//! Ops with unused results.

use tpc_ir::Code;

use super::{Capture, Check, EntityKind, Lint};
use tpc_diag::{Diagnostic, message};
use tpc_ggml::capture::Record;

/// The declaration of the lint.
pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Op,
    code: Code::warning(
        "TPC0640",
        "a result that nothing reads",
        "An op is computed for every batch, but neither another op nor the caller reads its result, and it is \
         not marked as an output. Often the wrong tensor was passed on, or an edit left it behind.",
    )
    .example("a norm of the queries whose result is not what attention gets.")
    .cure("pass its result on, mark it as an output, or leave the op out."),
    check: Check::Graph(check),
};

fn check(graph: &Capture<'_>, out: &mut Vec<Diagnostic>) {
    let read = graph.read();
    let unread: Vec<&Record> = graph
        .records
        .iter()
        .enumerate()
        .filter(|(i, r)| !r.is_leaf() && !r.is_empty() && !r.is_view && !read.contains(i))
        .map(|(_, r)| r)
        .collect();
    // The last unused result is the graph's output.
    let Some((_, others)) = unread.split_last() else {
        return;
    };
    for r in others.iter().filter(|r| !r.is_output) {
        let name = graph.name(r);
        let message = message!(
            "nothing reads the result of {} ({})",
            r.op.to_string(),
            name
        );
        let d = LINT
            .finding(name, message)
            .help("pass its result on, mark it as an output, or leave the op out");
        out.push(graph.at(r, "this result is never read", d));
    }
}
