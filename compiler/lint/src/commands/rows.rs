//! The split mode `row`, which tpc does not have.

use tpc_ir::Code;

use super::{Check, Command, EntityKind, Lint};
use tpc_diag::Diagnostic;
use tpc_ggml::llama_cpp::Setting;

/// The declaration of the lint.
pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Option,
    code: Code::warning(
        "TPC0912",
        "tpc has no row split",
        "llama.cpp's `-sm row` splits single matrices by rows and keeps the KV cache and all else on the main \
         device, so each matrix product ends with a transfer. tpc has no such mode: it treats `row` as `tensor`, \
         which also splits attention and the cache.",
    )
    .example("`-sm row -ts 1,1`.")
    .cure("`-sm tensor` with llama.cpp, too."),
    check: Check::Command(check),
};

fn check(command: &Command<'_>, out: &mut Vec<Diagnostic>) {
    if command.line.value(Setting::SplitMode) == Some("row") {
        let message = "llama.cpp splits matrices by rows and keeps the KV cache on the main device; tpc plans a tensor split";
        out.push(
            LINT.finding("-sm", message)
                .help("use -sm tensor with llama.cpp, too"),
        );
    }
}
