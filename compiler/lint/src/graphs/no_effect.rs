use tpc_ir::Code;

use super::{Capture, Check, EntityKind, Lint};
use tpc_diag::{Diagnostic, Name, message};
use tpc_ggml::op::GgmlOp;

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Op,
    code: Code::note(
        "TPC0656",
        "an op has no effect",
        "A `SCALE` by 1, or a `REPEAT` to the same sizes, returns its operand and costs a pass over the data.",
    )
    .example("a factor in the metadata that is 1 for this model.")
    .cure("leave out the op if the factor is 1."),
    check: Check::Graph(check),
};

fn check(graph: &Capture<'_>, out: &mut Vec<Diagnostic>) {
    for r in graph
        .records
        .iter()
        .filter(|r| !r.writes() && !r.is_empty())
    {
        let source = r.src.first().copied().flatten().map(|s| &graph.records[s]);
        let idle = match &r.op {
            GgmlOp::Scale(p) => p.scale == 1.0 && p.bias == 0.0,
            GgmlOp::Repeat => source.is_some_and(|s| s.ne() == r.ne()),
            _ => false,
        };
        if idle {
            let of = source.map_or_else(|| Name::plain(""), |s| graph.name(s));
            let message = message!(
                "{} ({}) returns {} unchanged",
                r.op.to_string(),
                graph.name(r),
                of
            );
            let d = LINT.finding(graph.name(r), message);
            out.push(graph.at(r, "changes nothing", d.help(message!("use {} itself", of))));
        }
    }
}
