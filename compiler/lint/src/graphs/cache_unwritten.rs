use std::collections::BTreeSet;

use tpc_ir::Code;

use super::{Capture, Check, EntityKind, Lint};
use tpc_diag::{Diagnostic, message};
use tpc_ggml::op::OpKind;

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Op,
    code: Code::warning(
        "TPC0644",
        "attention reads a cache that is never written",
        "Attention reads keys or values from a tensor that the graph neither computes nor writes, so it sees stale \
         memory from the first token on.",
    )
    .example("one layer does not store the values of the batch.")
    .cure("store the keys and values of the batch before attention."),
    check: Check::Graph(check),
};

fn check(graph: &Capture<'_>, out: &mut Vec<Diagnostic>) {
    let written: BTreeSet<usize> = graph.written_memory();
    for r in graph.records.iter().filter(|r| r.is(OpKind::FlashAttnExt)) {
        for (operand, what) in [(1, "keys"), (2, "values")] {
            let Some(source) = r.src.get(operand).copied().flatten() else {
                continue;
            };
            let root = graph.records[source].root;
            let owner = &graph.records[root];
            if owner.is_leaf() && !owner.is_input && !written.contains(&root) {
                let name = graph.name(owner);
                let message = message!(
                    "the {} of {} are {}, which is never written",
                    what,
                    graph.name(r),
                    name
                );
                let d = LINT.finding(name, message);
                let d = d.help(message!(
                    "write the {} of the batch to the cache before attention",
                    what
                ));
                out.push(graph.at(r, "reads memory that is never written", d));
            }
        }
    }
}
