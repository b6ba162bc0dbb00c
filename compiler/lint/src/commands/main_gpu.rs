//! Main devices where there is none.

use tpc_ir::Code;

use super::{Check, Command, EntityKind, Lint};
use tpc_diag::{Diagnostic, message};
use tpc_ggml::llama_cpp::Setting;

/// The lint.
pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Option,
    code: Code::warning(
        "TPC0911",
        "a main device without effect",
        "`-mg` names the device that holds everything with `-sm none`, and what is not split with `-sm row`. \
         With `-sm layer`, the default, and `-sm tensor` llama.cpp does not look at it.",
    )
    .example("`-sm tensor -mg 1`.")
    .cure("leave it out; `-dev` chooses and orders the devices."),
    check: Check::Command(check),
};

fn check(command: &Command<'_>, out: &mut Vec<Diagnostic>) {
    let mode = command.line.value(Setting::SplitMode).unwrap_or("layer");
    if let Some(given) = command.line.last(Setting::MainGpu)
        && matches!(mode, "layer" | "tensor")
    {
        let message = message!("-mg {} has no effect with -sm {}", given.value, mode);
        let help = "leave it out; -dev chooses and orders the devices";
        out.push(LINT.finding(&given.spelling, message).help(help));
    }
}
