//! A number of devices that nothing states.

use tpc_ir::Code;

use super::{Check, Command, EntityKind, Lint};
use tpc_diag::Diagnostic;

/// The declaration of the lint.
pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Option,
    code: Code::note(
        "TPC0916",
        "the number of devices is assumed",
        "Neither `--devices` before the `--` nor `-dev`, `-ts` or `--rpc` in the command states the number of \
         devices. llama.cpp uses all devices that it finds; tpc plans for two.",
    )
    .example("`tpc lint -- llama-server -m X.gguf -sm tensor`.")
    .cure("`tpc lint --devices 4 -- …`."),
    check: Check::Command(check),
};

fn check(command: &Command<'_>, out: &mut Vec<Diagnostic>) {
    if command.assumed {
        let message = "the number of devices is not stated: llama.cpp uses all that it finds, tpc plans for 2";
        let note = LINT.finding("--devices", message);
        out.push(note.help("state it before the command: tpc lint --devices 4 -- …"));
    }
}
