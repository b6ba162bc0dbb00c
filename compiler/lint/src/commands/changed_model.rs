//! Lines that override the file.

use tpc_ir::{Code, Severity};

use super::{Check, Command, EntityKind, Lint};
use tpc_diag::{Diagnostic, message};
use tpc_ggml::llama_cpp::Setting;

/// The lint.
pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Option,
    code: Code::warning(
        "TPC0918",
        "options that change the model",
        "The line changes what the file says: its metadata (`--override-kv`) or the scaling of the rotation. The \
         plan is of the file as it is; splits do not depend on the rotation, but a changed count (of experts \
         used, of layers) changes the graph.",
    )
    .example("`--override-kv qwen3moe.expert_used_count=int:16`.")
    .cure("none is needed for the rotation; for counts, a file that says so.")
    .or(Severity::Note),
    check: Check::Command(check),
};

fn check(command: &Command<'_>, out: &mut Vec<Diagnostic>) {
    for given in command.line.all(Setting::OverrideKv) {
        let message = message!(
            "{} {}: the plan is of the file as it is",
            given.spelling,
            given.value
        );
        let d = LINT.finding(&given.spelling, message);
        out.push(d.help("write the value into the file to plan with it"));
    }
    if let Some(given) = command.line.last(Setting::Rope) {
        let message = message!(
            "{} {}: the plan is of the file's rotation",
            given.spelling,
            given.value
        );
        let note = LINT.milder_finding(&given.spelling, message);
        out.push(note.help("none is needed: splits do not depend on the rotation"));
    }
}
