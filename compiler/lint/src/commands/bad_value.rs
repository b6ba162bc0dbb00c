//! Values that llama.cpp rejects.

use tpc_ir::Code;

use super::{Check, Command, EntityKind, Lint};
use tpc_diag::Diagnostic;

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Option,
    code: Code::error(
        "TPC0920",
        "llama.cpp rejects or misreads an option's value",
        "An option has an invalid value, or no value although it needs one. The program stops with an error or uses \
         another value: of a number it reads only the leading digits, so `-c 8k` is a context of 8. The plan uses the \
         intended value and ignores values without a meaning.",
    )
    .example("`-fa -c 8192`: `-fa` needs `on`, `off` or `auto`.")
    .cure("use a value that the help names."),
    check: Check::Command(check),
};

fn check(command: &Command<'_>, out: &mut Vec<Diagnostic>) {
    for fault in &command.line.faults {
        let finding = LINT.finding(&fault.spelling, fault.what.clone());
        out.push(finding.help(fault.takes.clone()));
    }
}
