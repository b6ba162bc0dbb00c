//! `-mg` with a split mode that ignores it.

use tpc_ir::Code;

use super::{Check, Command, EntityKind, Lint};
use tpc_diag::{Diagnostic, message};
use tpc_ggml::llama_cpp::Setting;

/// The declaration of the lint.
pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Option,
    code: Code::warning(
        "TPC0911",
        "a main device without effect",
        "With `-sm none`, `-mg` names the device that holds everything; with `-sm row`, the device that holds \
         what is not split. With `-sm layer` (the default) and `-sm tensor`, llama.cpp ignores it.",
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
