use tpc_ir::Code;

use super::{Capture, Check, EntityKind, Lint};
use tpc_diag::{Diagnostic, message};
use tpc_ggml::capture::Record;

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Op,
    code: Code::warning(
        "TPC0640",
        "a result is never read",
        "An op's result is neither read nor marked as an output. Often the wrong tensor was passed on, or an edit left \
         the op behind.",
    )
    .example("attention gets the queries instead of their norm.")
    .cure("use the result, mark it as an output, or remove the op."),
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
    // The last unread result is the graph's output.
    let Some((_, others)) = unread.split_last() else {
        return;
    };
    for r in others.iter().filter(|r| !r.is_output) {
        let name = graph.name(r);
        let message = message!(
            "the result of {} ({}) is never read",
            r.op.to_string(),
            name
        );
        let d = LINT
            .finding(name, message)
            .help("use the result, mark it as an output, or remove the op");
        out.push(graph.at(r, "this result is never read", d));
    }
}
