use tpc_ir::Code;

use super::{Capture, Check, EntityKind, Lint};
use tpc_core::format::bytes;
use tpc_diag::{Diagnostic, Quantity, message};
use tpc_ggml::op::Family;

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Tensor,
    code: Code::warning(
        "TPC0655",
        "a weight is rearranged for every batch",
        "The graph copies, casts or transposes a weight for every batch. The converter can store the result instead.",
    )
    .example("`ggml_cont(ggml_transpose(w))` instead of a transposed matrix in the file.")
    .cure("store the rearranged weight in the file."),
    check: Check::Graph(check),
};

fn check(graph: &Capture<'_>, out: &mut Vec<Diagnostic>) {
    let written = graph.written_memory();
    for r in graph.records {
        let copies = r.op.family() == Family::Copy && !r.is_view;
        let Some(source) = r.src.first().copied().flatten().filter(|_| copies) else {
            continue;
        };
        let root = graph.records[source].root;
        let weight = &graph.records[root];
        let constant = weight.is_leaf() && !weight.is_input && !weight.dtype.is_integer();
        if constant
            && !written.contains(&root)
            && weight.ne()[1] > 1
            && !graph.masks().contains(&root)
        {
            let size = r.dtype.bytes(r.elements()).unwrap_or(0);
            let name = graph.name(weight);
            let message = message!(
                "{} is copied for every batch ({})",
                name,
                Quantity(bytes(size))
            );
            let d = LINT.finding(name, message);
            let d = d.help("store the rearranged weight in the file");
            out.push(graph.at(r, "the same for every batch", d));
        }
    }
}
