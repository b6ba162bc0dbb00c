use std::collections::BTreeSet;

use tpc_ir::Code;

use super::{Capture, Check, EntityKind, Lint};
use tpc_diag::{Diagnostic, message};

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Op,
    code: Code::warning(
        "TPC0643",
        "a cache is written but never read",
        "The graph writes keys, values or a state to a tensor that no op reads. Attention sees only the batch, or \
         another cache.",
    )
    .example("attention gets the new keys instead of the view of the cache.")
    .cure("read the cache after writing it."),
    check: Check::Graph(check),
};

fn check(graph: &Capture<'_>, out: &mut Vec<Diagnostic>) {
    let read = graph.read();
    let mut told = BTreeSet::new();
    for r in graph.records.iter().filter(|r| r.writes() && !r.is_empty()) {
        let owner = &graph.records[r.root];
        if !owner.is_leaf() || read.contains(&r.root) || !told.insert(r.root) {
            continue;
        }
        let name = graph.name(owner);
        let message = message!("{} is written by {} but never read", name, r.op.to_string());
        let d = LINT.finding(name, message);
        let d = d.help("read the cache after writing it");
        out.push(graph.at(r, "written here, never read", d));
    }
}
