use tpc_ir::Code;

use super::{Check, Command, EntityKind, Lint};
use tpc_diag::Diagnostic;

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Option,
    code: Code::error(
        "TPC0920",
        "llama.cpp rejects or misreads an option's value",
        "An option has an invalid value, or lacks its value. The program stops, or uses another value: it reads only \
         the leading digits of a number, so `-c 8k` is a context of 8. The plan uses the intended value.",
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
