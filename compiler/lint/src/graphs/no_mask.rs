use tpc_ir::Code;

use super::{Capture, Check, EntityKind, Lint};
use tpc_diag::{Diagnostic, message};
use tpc_ggml::op::OpKind;

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Op,
    code: Code::warning(
        "TPC0654",
        "attention reads a cache without a mask",
        "Each token also attends to later tokens, other sequences and unused cells of the cache.",
    )
    .example("`ggml_flash_attn_ext` with a null mask in one branch of a graph.")
    .cure("pass the mask of the batch."),
    check: Check::Graph(check),
};

fn check(graph: &Capture<'_>, out: &mut Vec<Diagnostic>) {
    let written = graph.written_memory();
    for r in graph.records.iter().filter(|r| r.is(OpKind::FlashAttnExt)) {
        let operand = |i: usize| r.src.get(i).copied().flatten().map(|s| &graph.records[s]);
        let cached = operand(1).is_some_and(|k| written.contains(&k.root));
        if cached && operand(3).is_none() {
            let message = message!("{} attends to all cells of the cache", graph.name(r));
            let d = LINT.finding(graph.name(r), message);
            let d = d.help("pass the mask of the batch");
            out.push(graph.at(r, "has no mask", d));
        }
    }
}
