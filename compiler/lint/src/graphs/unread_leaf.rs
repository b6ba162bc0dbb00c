use tpc_ir::Code;

use super::{Capture, Check, EntityKind, Lint};
use tpc_diag::{Diagnostic, message};

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Tensor,
    code: Code::warning(
        "TPC0652",
        "the graph does not read a tensor",
        "No op reads this weight or input. Either it is not needed, or an op is missing, such as the addition of a \
         bias.",
    )
    .example("`blk.0.attn_q.bias` without an `ADD`.")
    .cure("use the tensor, or leave it out."),
    check: Check::Graph(check),
};

fn check(graph: &Capture<'_>, out: &mut Vec<Diagnostic>) {
    let read = graph.read();
    let written = graph.written_memory();
    for (i, r) in graph.records.iter().enumerate() {
        let leaf = r.is_leaf() && !r.is_view && !r.is_empty();
        if leaf && !read.contains(&i) && !written.contains(&i) {
            let name = graph.name(r);
            let message = message!("no op reads {}", name);
            let d = LINT.finding(name, message).line(r.line);
            out.push(d.help("use the tensor, or leave it out"));
        }
    }
}
