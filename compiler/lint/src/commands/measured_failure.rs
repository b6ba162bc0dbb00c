//! Architectures that fail, by measurement.

use tpc_ir::Code;

use super::{Check, Command, EntityKind, Lint};
use tpc_diag::{Diagnostic, message};
use tpc_ggml::llama_cpp::{Observation, measurement};

/// The lint.
pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Option,
    code: Code::error(
        "TPC0915",
        "a model that llama.cpp got wrong when split",
        "A small model of this architecture was run by llama.cpp 0.5.0 with `-sm tensor` and such options, and \
         the process aborted or the logits were wrong, though the architecture is not refused. tpc's are those \
         of one device.",
    )
    .example("Qwen 3.5 on two devices; LFM 2 on three.")
    .cure("`-sm layer` there, or the command of tpc that is printed."),
    check: Check::Command(check),
};

fn check(command: &Command<'_>, out: &mut Vec<Diagnostic>) {
    let arch = command.file.arch();
    let Some(m) = measurement(arch).filter(|_| command.splits_tensors()) else {
        return;
    };
    let devices = command.placement.devices.len();
    let experts = !command.placement.host_experts.is_none();
    let tried = [
        (m.two, devices >= 2, "on two devices"),
        (m.three, devices >= 3, "on three devices"),
        (m.experts_on_host, experts, "with all experts on the host"),
    ];
    let failed = tried
        .iter()
        .find(|(o, given, _)| *given && matches!(o, Observation::Crash | Observation::Wrong));
    let Some((outcome, _, how)) = failed else {
        return;
    };
    let went = match outcome {
        Observation::Crash => "aborted",
        _ => "computed wrong logits",
    };
    let message = message!("llama.cpp 0.5.0 {} with a model of {} {}", went, arch, how);
    let help = message!(
        "-sm layer there; tpc's logits are those of one device: {}",
        command.equivalent
    );
    out.push(LINT.finding("-sm", message).help(help));
}
