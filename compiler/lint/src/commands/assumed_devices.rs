use tpc_ir::Code;

use super::{Check, Command, EntityKind, Lint};
use tpc_diag::{Diagnostic, message};
use tpc_ggml::llama_cpp::{DeviceCount, device_count};

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Option,
    code: Code::note(
        "TPC0916",
        "the number of devices is assumed",
        "Neither `--devices` before the `--`, nor `-dev`, nor `-ts` gives the number of devices. llama.cpp uses all \
         devices; tpc plans for two, or for the number that options such as `-mg 3` and `-ot …=CUDA3` need. With \
         `--rpc` it counts each server and at least one local device.",
    )
    .example("`tpc lint -- llama-server -m X.gguf -sm tensor`.")
    .cure("state the number: `tpc lint --devices 4 -- …`."),
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
                "the number of local devices is not stated: llama.cpp uses all; tpc plans for {} local and {} remote \
                 devices",
                here,
                servers
            );
            let note = LINT.finding("--devices", message);
            out.push(note.help("state all devices before the command, servers first: tpc lint --devices 4090,2x3090 -- …"));
            return;
        }
        let message = message!(
            "the number of devices is not stated: llama.cpp uses every device that it finds; {}",
            plans
        );
        let note = LINT.finding("--devices", message);
        out.push(note.help("state the number before the command: tpc lint --devices 4 -- …"));
    }
}
