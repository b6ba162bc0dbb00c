use tpc_ir::Code;

use super::{Capture, Check, EntityKind, Lint};
use tpc_diag::{Diagnostic, message};
use tpc_ggml::op::Family;

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Op,
    code: Code::note(
        "TPC0642",
        "a tensor is copied without need",
        "`CONT`, `CPY` or `DUP` copies a packed tensor to the same type and layout.",
    )
    .example("`ggml_cont` of a reshape of a matrix product's result.")
    .cure("use the source of the copy."),
    check: Check::Graph(check),
};

fn check(graph: &Capture<'_>, out: &mut Vec<Diagnostic>) {
    for r in graph.records {
        let source = r.src.first().copied().flatten();
        let copies = r.op.family() == Family::Copy && !r.is_view;
        let Some(source) = source.filter(|_| copies).map(|s| &graph.records[s]) else {
            continue;
        };
        let same = (source.dtype, source.layout.ne, source.layout.nb)
            == (r.dtype, r.layout.ne, r.layout.nb);
        if same && !r.is_empty() {
            let message = message!(
                "{} copies {}, which is already packed",
                r.op.to_string(),
                graph.name(source)
            );
            let d = LINT.finding(graph.name(r), message);
            out.push(
                d.help(message!("use {} itself", graph.name(source)))
                    .line(r.line),
            );
        }
    }
}
