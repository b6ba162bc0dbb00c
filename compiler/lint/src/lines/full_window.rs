//! Windows that are kept whole.

use tpc_ir::Code;

use super::{Check, Line, Lint, Names};
use tpc_diag::Diagnostic;
use tpc_ggml::llama_cpp::Setting;

/// The lint.
pub(crate) static LINT: Lint = Lint {
    names: Names::Option,
    code: Code::warning(
        "TPC0919",
        "caches of windows in full size",
        "`--swa-full` keeps the caches of layers with a sliding window as long as the context. tpc keeps the \
         window alone, so the engine takes more memory than the plan says.",
    )
    .example("`--swa-full` with a Gemma 3 model.")
    .cure("leave it out, unless cached prompts are to be reused."),
    check: Check::Line(check),
};

fn check(line: &Line<'_>, out: &mut Vec<Diagnostic>) {
    let windowed = line.file.model.is_some_and(|m| m.summary.window.is_some());
    if windowed
        && line.command.last(Setting::FullWindow).is_some()
        && !line.command.is_off(Setting::FullWindow)
    {
        let message = "llama.cpp keeps the caches of sliding windows as long as the context; the plan has the windows";
        let help = "leave it out, unless cached prompts are to be reused";
        out.push(Diagnostic::new(&LINT.code, "--swa-full", message).help(help));
    }
}
