//! Values that llama.cpp does not take.

use tpc_ir::Code;

use super::{Check, Command, EntityKind, Lint};
use tpc_diag::Diagnostic;

/// The declaration of the lint.
pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Option,
    code: Code::error(
        "TPC0920",
        "a value that llama.cpp does not take",
        "An option has a value that the program does not take, or none where it needs one: it stops with an error, or runs with \
         another value than the one meant. Of a number it reads the digits at the begin: `-c 8k` is a context of 8. The plan has \
         the value that is meant, and leaves out what means nothing.",
    )
    .example("`-fa -c 8192`: `-fa` needs `on`, `off` or `auto`.")
    .cure("a value that the help names."),
    check: Check::Command(check),
};

fn check(command: &Command<'_>, out: &mut Vec<Diagnostic>) {
    for fault in &command.line.faults {
        let finding = LINT.finding(&fault.spelling, fault.what.clone());
        out.push(finding.help(fault.takes.clone()));
    }
}
