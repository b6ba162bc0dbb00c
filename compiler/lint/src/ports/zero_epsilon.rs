//! Norms that divide by zero.

use tpc_ir::Code;

use super::{Check, Lint, Names, Port};
use tpc_diag::Diagnostic;
use tpc_ggml::op::GgmlOp;

/// The lint.
pub(crate) static LINT: Lint = Lint {
    names: Names::Op,
    code: Code::warning(
        "TPC0647",
        "a norm without an epsilon",
        "The epsilon of a norm is 0: a row of zeros is divided by zero, and NaNs spread through all that \
         follows. Rows of padding, and rows of devices that hold nothing of a sum, are zeros.",
    )
    .example("a key of the metadata that was not found, and read as 0.")
    .cure("the epsilon of the model's configuration, such as 1e-5."),
    check: Check::Port(check),
};

fn check(port: &Port<'_>, out: &mut Vec<Diagnostic>) {
    for r in port.records {
        let epsilon = match (&r.op, r.op.norm()) {
            (_, Some(p)) => p.eps,
            (GgmlOp::GroupNorm(p), _) => p.eps,
            _ => continue,
        };
        if epsilon > 0.0 {
            continue;
        }
        let message = format!("{} ({}) has the epsilon {epsilon}", r.op, port.name(r));
        let d = Diagnostic::new(&LINT.code, port.name(r), message);
        let d = d.help("the epsilon of the model's configuration, such as 1e-5");
        out.push(port.at(r, "divides zeros by zero", d));
    }
}
