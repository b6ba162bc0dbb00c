use tpc_ir::Code;

use super::{Check, Command, EntityKind, Lint};
use tpc_diag::{Diagnostic, message};
use tpc_ggml::llama_cpp::Setting;

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Option,
    code: Code::warning(
        "TPC0911",
        "the split mode ignores -mg",
        "`-mg` names the device that holds everything (`-sm none`), or the parts that are not split (`-sm row`). \
         llama.cpp ignores it with `-sm layer`, the default, and `-sm tensor`.",
    )
    .example("`-sm tensor -mg 1`.")
    .cure("leave out `-mg`; `-dev` chooses and orders the devices."),
    check: Check::Command(check),
};

fn check(command: &Command<'_>, out: &mut Vec<Diagnostic>) {
    let mode = command.line.value(Setting::SplitMode).unwrap_or("layer");
    if let Some(given) = command.line.last(Setting::MainGpu)
        && matches!(mode, "layer" | "tensor")
    {
        let message = message!("-mg {} is ignored with -sm {}", given.value, mode);
        let help = "leave out -mg; -dev chooses and orders the devices";
        out.push(LINT.finding(&given.spelling, message).help(help));
    }
}
