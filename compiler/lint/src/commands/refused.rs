//! Architectures whose tensor split llama.cpp refuses.

use tpc_ir::Code;

use super::{Check, Command, EntityKind, Lint};
use tpc_diag::{Diagnostic, message};
use tpc_ggml::meta::REFUSED;

/// The declaration of the lint.
pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Option,
    code: Code::error(
        "TPC0900",
        "an architecture that llama.cpp does not split",
        "The command asks for `-sm tensor`, which llama.cpp refuses for this architecture by name: it does not \
         load the model. tpc splits it.",
    )
    .example("`llama-server -m olmo2.gguf -sm tensor`.")
    .cure("`-sm layer` with llama.cpp, or the `tpc` command in the help."),
    check: Check::Command(check),
};

fn check(command: &Command<'_>, out: &mut Vec<Diagnostic>) {
    let arch = command.file.arch();
    if command.splits_tensors() && REFUSED.contains(&arch) {
        let message = message!(
            "llama.cpp refuses -sm tensor for {} and does not load the model",
            arch
        );
        let help = message!(
            "use -sm layer with llama.cpp; tpc splits it: {}",
            command.equivalent
        );
        out.push(LINT.finding("-sm", message).help(help));
    }
}
