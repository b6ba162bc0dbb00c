use tpc_ir::Code;

use super::{Check, Command, EntityKind, Lint};
use tpc_diag::Diagnostic;
use tpc_ggml::llama_cpp::Setting;

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Option,
    code: Code::warning(
        "TPC0919",
        "sliding-window caches have full length",
        "`--swa-full` makes the caches of sliding-window layers as long as the context. tpc keeps only the window, so \
         llama.cpp needs more memory than the plan states.",
    )
    .example("`--swa-full` with a Gemma 3 model.")
    .cure("leave out `--swa-full`, unless cached prompts are reused."),
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
        let message = "llama.cpp keeps sliding-window caches as long as the context; the plan keeps only the windows";
        let help = "leave out --swa-full, unless cached prompts are reused";
        out.push(LINT.finding("--swa-full", message).help(help));
    }
}
