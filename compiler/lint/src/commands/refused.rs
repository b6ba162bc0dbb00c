//! Architectures that the engine refuses.

use tpc_ir::Code;

use super::{Check, Command, EntityKind, Lint};
use tpc_diag::{Diagnostic, message};
use tpc_ggml::meta::REFUSED;

/// The lint.
pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Option,
    code: Code::error(
        "TPC0900",
        "an architecture that llama.cpp does not split",
        "The line asks llama.cpp for `-sm tensor`, which it refuses for this architecture by name: the model is \
         not loaded. tpc splits it.",
    )
    .example("`llama-server -m olmo2.gguf -sm tensor`.")
    .cure("`-sm layer` there, or the command of tpc that is printed."),
    check: Check::Command(check),
};

fn check(command: &Command<'_>, out: &mut Vec<Diagnostic>) {
    let arch = command.file.arch();
    if command.splits_tensors() && REFUSED.contains(&arch) {
        let message = message!(
            "llama.cpp refuses -sm tensor for {} and does not load the model",
            arch
        );
        let help = message!("-sm layer there; tpc splits it: {}", command.equivalent);
        out.push(LINT.finding("-sm", message).help(help));
    }
}
