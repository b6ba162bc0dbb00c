//! Numbers of devices beyond the engine's.

use tpc_ir::CodeDoc;

use super::{Check, Line, Lint, Names};
use tpc_diag::Diagnostic;
use tpc_ggml::meta::MAX_DEVICES;

/// The lint.
pub(crate) const LINT: Lint = Lint {
    names: Names::Option,
    doc: CodeDoc {
        code: "TPC0907",
        title: "more devices than llama.cpp splits tensors among",
        doc: "llama.cpp's tensor split takes at most 16 devices.\n\
              Example: `-sm tensor` with 17 entries in `-ts`.\n\
              Cure: 16 devices or fewer there; tpc plans up to 64.",
    },
    check: Check::Line(check),
};

fn check(line: &Line<'_>, out: &mut Vec<Diagnostic>) {
    let n = line.placement.devices.len();
    if line.splits_tensors() && n > MAX_DEVICES {
        let message =
            format!("llama.cpp splits tensors among at most {MAX_DEVICES} devices, not {n}");
        let help = format!("fewer devices there; tpc plans it: {}", line.equivalent);
        out.push(Diagnostic::error("TPC0907", "-dev", message).help(help));
    }
}
