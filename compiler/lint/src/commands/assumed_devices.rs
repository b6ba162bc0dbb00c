//! An unspecified number of devices.

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
        "Neither `--devices` before the `--` nor `-dev` or `-ts` in the command states the number of \
         devices. llama.cpp uses all devices that it finds; tpc plans for two, or for as many as options such as `-mg 3` \
         and `-ot …=CUDA3` name. With `--rpc` each server counts, and this machine has one device at least.",
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
        if let Some(servers) = command.line.servers() {
            let servers = servers.len();
            let here = count.saturating_sub(servers);
            let message = message!(
                "this machine's devices are not stated: llama.cpp uses all that it finds beside the servers; tpc plans for {} here and {} there",
                here,
                servers
            );
            let note = LINT.finding("--devices", message);
            out.push(note.help("state all before the command, those of servers first: tpc lint --devices 4090,2x3090 -- …"));
            return;
        }
        let message = message!(
            "the number of devices is not stated: llama.cpp uses all that it finds; {}",
            plans
        );
        let note = LINT.finding("--devices", message);
        out.push(note.help("state it before the command: tpc lint --devices 4 -- …"));
    }
}
