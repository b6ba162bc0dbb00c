//! Attention to a cache that is never written.

use std::collections::BTreeSet;

use tpc_ir::Code;

use super::{Capture, Check, EntityKind, Lint};
use tpc_diag::{Diagnostic, message};
use tpc_ggml::op::OpKind;

/// The declaration of the lint.
pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Op,
    code: Code::warning(
        "TPC0644",
        "attention to a tensor that nothing writes",
        "Attention reads its keys or values from a tensor that the graph neither computes nor writes. Even the \
         first token attends to whatever is in memory.",
    )
    .example("the call that stores the values of the batch is missing for one layer.")
    .cure("store the keys and values of the batch before they are read."),
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
                    "the {} of {} are {}, which nothing writes",
                    what,
                    graph.name(r),
                    name
                );
                let d = LINT.finding(name, message);
                let d = d.help(message!(
                    "write the {} of the batch to the cache before reading it",
                    what
                ));
                out.push(graph.at(r, "reads memory that nothing writes", d));
            }
        }
    }
}
