//! Windows that are kept whole.

use tpc_ir::Code;

use super::{Check, Command, EntityKind, Lint};
use tpc_diag::Diagnostic;
use tpc_ggml::llama_cpp::Setting;

/// The lint.
pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Option,
    code: Code::warning(
        "TPC0919",
        "caches of windows in full size",
        "`--swa-full` keeps the caches of layers with a sliding window as long as the context. tpc keeps the \
         window alone, so the engine takes more memory than the plan says.",
    )
    .example("`--swa-full` with a Gemma 3 model.")
    .cure("leave it out, unless cached prompts are to be reused."),
    check: Check::Command(check),
};

fn check(command: &Command<'_>, out: &mut Vec<Diagnostic>) {
    let windowed = command
        .file
        .model
        .is_some_and(|m| m.summary.window.is_some());
    if windowed
        && command.line.last(Setting::FullWindow).is_some()
        && !command.line.is_off(Setting::FullWindow)
    {
        let message = "llama.cpp keeps the caches of sliding windows as long as the context; the plan has the windows";
        let help = "leave it out, unless cached prompts are to be reused";
        out.push(LINT.finding("--swa-full", message).help(help));
    }
}
