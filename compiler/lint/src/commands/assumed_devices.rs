//! A number of devices that nothing states.

use tpc_ir::Code;

use super::{Check, Command, EntityKind, Lint};
use tpc_diag::{Diagnostic, message};
use tpc_ggml::llama_cpp::{DeviceCount, device_count};

/// The declaration of the lint.
pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Option,
    code: Code::note(
        "TPC0916",
        "the number of devices is assumed",
        "Neither `--devices` before the `--` nor `-dev`, `-ts` or `--rpc` in the command states the number of \
         devices. llama.cpp uses all devices that it finds; tpc plans for two, or for as many as options such as `-mg 3` \
         and `-ot …=CUDA3` name.",
    )
    .example("`tpc lint -- llama-server -m X.gguf -sm tensor`.")
    .cure("`tpc lint --devices 4 -- …`."),
    check: Check::Command(check),
};

fn check(command: &Command<'_>, out: &mut Vec<Diagnostic>) {
    if command.assumed {
        let DeviceCount {
            count, named_by, ..
        } = device_count(command.line);
        let plans = match named_by {
            Some(option) => message!("`{}` needs {}, and tpc plans for these", option, count),
            None => message!("tpc plans for {}", count),
        };
        let message = message!(
            "the number of devices is not stated: llama.cpp uses all that it finds; {}",
            plans
        );
        let note = LINT.finding("--devices", message);
        out.push(note.help("state it before the command: tpc lint --devices 4 -- …"));
    }
}
