use tpc_ir::Code;
use tpc_ir::DType;

use super::{Capture, Check, EntityKind, Lint};
use tpc_diag::{Diagnostic, message};
use tpc_ggml::op::{Family, GgmlOp};

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Op,
    code: Code::warning(
        "TPC0651",
        "arithmetic in half precision",
        "An op adds, multiplies or normalises in f16 or bf16 instead of f32. Sums lose bits, more so if devices add \
         partial sums, and large f16 activations overflow.",
    )
    .example("a residual stream that was cast to f16 to save memory.")
    .cure("compute in f32, and cast the result before storing it."),
    check: Check::Graph(check),
};

fn is_arithmetic(op: &GgmlOp) -> bool {
    matches!(op.family(), Family::Binary | Family::Norm)
        || matches!(
            op,
            GgmlOp::Add1
                | GgmlOp::Scale(_)
                | GgmlOp::Sum
                | GgmlOp::SumRows
                | GgmlOp::Mean
                | GgmlOp::SoftMax(_)
                | GgmlOp::MulMat(_)
        )
}

fn check(graph: &Capture<'_>, out: &mut Vec<Diagnostic>) {
    for r in graph.records {
        let half = matches!(r.dtype, DType::F16 | DType::Bf16);
        if half && is_arithmetic(&r.op) {
            let message = message!(
                "{} ({}) computes in {}",
                r.op.to_string(),
                graph.name(r),
                r.dtype.name()
            );
            let d = LINT.finding(graph.name(r), message);
            let d = d.help("compute in f32, and cast the result before storing it");
            out.push(graph.at(r, "in half precision", d));
        }
    }
}
