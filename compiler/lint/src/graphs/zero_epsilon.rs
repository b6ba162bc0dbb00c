//! Norms that divide by zero.

use tpc_ir::Code;

use super::{Capture, Check, EntityKind, Lint};
use tpc_diag::{Diagnostic, message};
use tpc_ggml::op::GgmlOp;

/// The lint.
pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Op,
    code: Code::warning(
        "TPC0647",
        "a norm without an epsilon",
        "The epsilon of a norm is 0: a row of zeros is divided by zero, and NaNs spread through all that \
         follows. Rows of padding, and rows of devices that hold nothing of a sum, are zeros.",
    )
    .example("a key of the metadata that was not found, and read as 0.")
    .cure("the epsilon of the model's configuration, such as 1e-5."),
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
        let d = d.help("the epsilon of the model's configuration, such as 1e-5");
        out.push(graph.at(r, "divides zeros by zero", d));
    }
}
