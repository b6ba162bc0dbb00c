//! More devices than llama.cpp's tensor split supports.

use super::{Check, Command, EntityKind, Lint};
use tpc_diag::{Diagnostic, message};
use tpc_ggml::llama_cpp::limit_codes;
use tpc_ggml::meta::MAX_DEVICES;

/// The declaration of the lint.
pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Option,
    code: limit_codes::MANY_DEVICES,
    check: Check::Command(check),
};

fn check(command: &Command<'_>, out: &mut Vec<Diagnostic>) {
    let n = command.placement.devices.len();
    if command.splits_tensors() && n > MAX_DEVICES {
        let message = message!(
            "llama.cpp splits tensors among at most {} devices, not {}",
            MAX_DEVICES,
            n
        );
        let help = message!(
            "use fewer devices with llama.cpp; tpc can plan it: {}",
            command.equivalent
        );
        out.push(LINT.finding("-dev", message).help(help));
    }
}
