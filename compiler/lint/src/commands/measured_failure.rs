//! Architectures whose tensor split fails in llama.cpp, by measurement.

use super::{Check, Command, EntityKind, Lint};
use tpc_diag::{Diagnostic, message};
use tpc_ggml::llama_cpp::{Observation, limit_codes, measurement};

/// The declaration of the lint.
pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Option,
    code: limit_codes::MEASURED_FAILURE,
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
        "use -sm layer with llama.cpp; tpc's logits equal those of one device: {}",
        command.equivalent
    );
    out.push(LINT.finding("-sm", message).help(help));
}
