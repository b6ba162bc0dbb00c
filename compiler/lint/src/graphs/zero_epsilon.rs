use tpc_ir::Code;

use super::{Capture, Check, EntityKind, Lint};
use tpc_diag::{Diagnostic, message};
use tpc_ggml::op::GgmlOp;

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Op,
    code: Code::warning(
        "TPC0647",
        "a norm's epsilon is 0",
        "The norm divides rows of zeros by zero, and the NaNs spread. Padding has such rows, and so do devices without \
         a part of a sum.",
    )
    .example("a missing metadata key read as 0.")
    .cure("use the epsilon of the model's configuration, such as 1e-5."),
    check: Check::Graph(check),
};

fn check(graph: &Capture<'_>, out: &mut Vec<Diagnostic>) {
    for r in graph.records {
        let epsilon = match (&r.op, r.op.norm()) {
            (_, Some(p)) => p.eps,
            (GgmlOp::GroupNorm(p), _) => p.eps,
            _ => continue,
        };
        if epsilon > 0.0 {
            continue;
        }
        let message = message!(
            "{} ({}) has the epsilon {}",
            r.op.to_string(),
            graph.name(r),
            epsilon
        );
        let d = LINT.finding(graph.name(r), message);
        let d = d.help("use the epsilon of the model's configuration, such as 1e-5");
        out.push(graph.at(r, "divides by zero for a row of zeros", d));
    }
}
