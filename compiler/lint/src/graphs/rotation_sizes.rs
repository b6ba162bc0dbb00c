use tpc_ir::Code;
use tpc_ir::DType;

use super::{Capture, Check, EntityKind, Lint};
use tpc_diag::{Diagnostic, message};
use tpc_ggml::op::{GgmlOp, OpKind, Rope};

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Op,
    code: Code::warning(
        "TPC0653",
        "RoPE with impossible parameters",
        "The parameters of a `ROPE` contradict its operands: positions are not i32, an odd or too large \
         number of elements is rotated, or the base is not positive. ggml aborts, or produces NaNs.",
    )
    .example("a base read from a missing key.")
    .cure("use the parameters of the model's configuration; the message names the wrong one."),
    check: Check::Graph(check),
};

fn parameters(p: &Rope, len: u64) -> Option<String> {
    let (rotated, base) = (p.n_dims, p.freq_base);
    if rotated == 0 || rotated % 2 != 0 {
        return Some(format!(
            "the number of rotated elements, {rotated}, is odd or 0"
        ));
    }
    if rotated > len {
        return Some(format!("{rotated} rotated elements, but heads have {len}"));
    }
    (base.is_nan() || base <= 0.0).then(|| format!("the base is {base}"))
}

fn check(graph: &Capture<'_>, out: &mut Vec<Diagnostic>) {
    for r in graph.records.iter().filter(|r| r.is(OpKind::Rope)) {
        let positions = r.src.get(1).copied().flatten().map(|s| &graph.records[s]);
        let positions = positions.map(|p| p.dtype).filter(|&t| t != DType::I32);
        let fault = match (&r.op, positions) {
            (_, Some(dtype)) => message!("positions are {}, not i32", dtype.name()),
            (GgmlOp::Rope(p), _) => match parameters(p, r.ne()[0]) {
                Some(fault) => fault.into(),
                None => continue,
            },
            (GgmlOp::Malformed(_, error), _) => error.to_string().into(),
            _ => continue,
        };
        let message = message!("{}: {}", graph.name(r), fault);
        let d = LINT.finding(graph.name(r), message);
        let d = d.help(
            "use the RoPE dimension and base of the model's configuration, and i32 positions",
        );
        out.push(graph.at(r, "with these parameters", d));
    }
}
