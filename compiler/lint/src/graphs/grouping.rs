use tpc_ir::Code;

use super::{Capture, Check, EntityKind, Lint};
use tpc_diag::{Diagnostic, message};
use tpc_ggml::op::OpKind;

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Op,
    code: Code::warning(
        "TPC0658",
        "KV heads do not divide the query heads",
        "The number of query heads is not a multiple of the number of KV heads: ggml aborts. The usual cause is a \
         reshape with a wrong head size.",
    )
    .example("24 query heads and 5 KV heads, because of a wrong head size.")
    .cure("check the head sizes of the reshapes before attention."),
    check: Check::Graph(check),
};

fn check(graph: &Capture<'_>, out: &mut Vec<Diagnostic>) {
    for r in graph.records.iter().filter(|r| r.is(OpKind::FlashAttnExt)) {
        let heads = |i: usize| {
            let s = r.src.get(i).copied().flatten()?;
            Some(graph.records[s].ne()[2])
        };
        let (Some(q), Some(kv)) = (heads(0), heads(1)) else {
            continue;
        };
        if kv > 0 && !q.is_multiple_of(kv) {
            let message = message!(
                "{} has {} query heads and {} KV heads",
                graph.name(r),
                q,
                kv
            );
            let d = LINT.finding(graph.name(r), message);
            let d = d.help("check the head sizes of the reshapes before attention");
            out.push(graph.at(r, "the KV heads do not divide the query heads", d));
        }
    }
}
