//! Options that override the model file.

use tpc_ir::{Code, Severity};

use super::{Check, Command, EntityKind, Lint};
use tpc_diag::{Diagnostic, message};
use tpc_ggml::llama_cpp::Setting;

/// The declaration of the lint.
pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Option,
    code: Code::warning(
        "TPC0918",
        "options that change the model",
        "The command changes what the file states: its metadata (`--override-kv`) or its RoPE scaling. The plan \
         uses the file as it is. Splits do not depend on RoPE, but a changed count (of layers, of experts used) \
         changes the graph.",
    )
    .example("`--override-kv qwen3moe.expert_used_count=int:16`.")
    .cure("for RoPE none is needed; for counts, a file with the changed value.")
    .or(Severity::Note),
    check: Check::Command(check),
};

fn check(command: &Command<'_>, out: &mut Vec<Diagnostic>) {
    for given in command.line.all(Setting::OverrideKv) {
        let message = message!(
            "{} {} is ignored: the plan uses the file's own value",
            given.spelling,
            given.value
        );
        let d = LINT.finding(&given.spelling, message);
        out.push(d.help("write the value into the file to plan with it"));
    }
    if let Some(given) = command.line.last(Setting::Rope) {
        let message = message!(
            "{} {} is ignored: the plan uses the file's own RoPE",
            given.spelling,
            given.value
        );
        let note = LINT.milder_finding(&given.spelling, message);
        out.push(note.help("none is needed: splits do not depend on the rotation"));
    }
}
