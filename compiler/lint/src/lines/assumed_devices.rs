//! Devices that were counted by assumption.

use tpc_ir::Code;

use super::{Check, Line, Lint, Names};
use tpc_diag::Diagnostic;

/// The lint.
pub(crate) static LINT: Lint = Lint {
    names: Names::Option,
    code: Code::note(
        "TPC0916",
        "a number of devices that nobody says",
        "Neither `--devices` before the `--` nor `-dev`, `-ts` or `--rpc` in the line says how many devices \
         there are: llama.cpp takes all that it finds, the plan is for two.",
    )
    .example("`tpc lint -- llama-server -m X.gguf -sm tensor`.")
    .cure("`tpc lint --devices 4 -- …`."),
    check: Check::Line(check),
};

fn check(line: &Line<'_>, out: &mut Vec<Diagnostic>) {
    if line.assumed {
        let message = "llama.cpp takes all devices that it finds; the plan is for 2";
        let note = Diagnostic::new(&LINT.code, "--devices", message);
        out.push(note.help("say how many before the line: tpc lint --devices 4 -- …"));
    }
}
