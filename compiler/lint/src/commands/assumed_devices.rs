//! Devices that were counted by assumption.

use tpc_ir::Code;

use super::{Check, Command, EntityKind, Lint};
use tpc_diag::Diagnostic;

/// The lint.
pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Option,
    code: Code::note(
        "TPC0916",
        "a number of devices that nobody says",
        "Neither `--devices` before the `--` nor `-dev`, `-ts` or `--rpc` in the line says how many devices \
         there are: llama.cpp takes all that it finds, the plan is for two.",
    )
    .example("`tpc lint -- llama-server -m X.gguf -sm tensor`.")
    .cure("`tpc lint --devices 4 -- …`."),
    check: Check::Command(check),
};

fn check(command: &Command<'_>, out: &mut Vec<Diagnostic>) {
    if command.assumed {
        let message = "llama.cpp takes all devices that it finds; the plan is for 2";
        let note = LINT.finding("--devices", message);
        out.push(note.help("say how many before the line: tpc lint --devices 4 -- …"));
    }
}
