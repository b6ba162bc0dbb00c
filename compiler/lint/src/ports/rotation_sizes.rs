//! Rotations whose parameters make no sense.

use tpc_ir::CodeDoc;
use tpc_ir::DType;

use super::{Check, Lint, Names, Port};
use tpc_diag::Diagnostic;

/// The lint.
pub(crate) const LINT: Lint = Lint {
    names: Names::Op,
    doc: CodeDoc {
        code: "TPC0653",
        title: "a rotation that cannot be",
        doc: "The parameters of a `ROPE` contradict its operands: positions that are not i32, more rotated \
              elements than a head has, an odd number of them, or a base that is not above 0. ggml aborts, or \
              rotates by NaNs.\n\
              Example: a base that was read from a key that the file does not have.\n\
              Cure: the message says what is wrong.",
    },
    check: Check::Port(check),
};

fn check(port: &Port<'_>, out: &mut Vec<Diagnostic>) {
    for r in port.records.iter().filter(|r| r.op == "ROPE") {
        let positions = r.src.get(1).copied().flatten().map(|s| &port.records[s]);
        let (rotated, base) = (r.int(1), r.float(5));
        let fault = match positions {
            Some(p) if p.dtype != DType::I32 => {
                format!("positions are {}, not i32", p.dtype.name())
            }
            _ if rotated <= 0 || rotated % 2 != 0 => {
                format!("{rotated} elements are rotated: an even number above 0 can be")
            }
            _ if u64::from(rotated.unsigned_abs()) > r.ne()[0] => {
                format!("{rotated} elements are rotated of heads of {}", r.ne()[0])
            }
            _ if base.is_nan() || base <= 0.0 => format!("the base is {base}"),
            _ => continue,
        };
        let message = format!("{}: {fault}", port.name(r));
        let d = Diagnostic::warning("TPC0653", port.name(r), message);
        let d = d.help("the rotation of the model's configuration: dimension, base, positions");
        out.push(port.at(r, "with these parameters", d));
    }
}
