//! Architectures whose tensor split llama.cpp refuses.

use super::{Check, Command, EntityKind, Lint};
use tpc_diag::{Diagnostic, message};
use tpc_ggml::llama_cpp::limit_codes;
use tpc_ggml::meta::REFUSED;

/// The declaration of the lint.
pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Option,
    code: limit_codes::REFUSED_BY_NAME,
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
