use tpc_ir::Code;

use super::{Check, Command, EntityKind, Lint};
use tpc_diag::{Diagnostic, message};

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Option,
    code: Code::note(
        "TPC0931",
        "two RPC servers add sums in bf16",
        "Under `-sm tensor`, two RPC servers without a local device add partial sums themselves, and send sums of \
         32,768 or more elements (prompt tokens × embedding length) as bf16. Measured on 0.8.0, RPC: NMSE 6e-6 instead \
         of 4e-9 for llama, 1.4e-2 instead of 1.6e-4 for qwen35moe in q8_0.",
    )
    .example("`-sm tensor --rpc 10.0.0.2:50052,10.0.0.3:50052` on a machine without a device.")
    .cure("put `GGML_RPC_NO_COMM=1` before the command to add in f32."),
    check: Check::Command(check),
};

/// The minimum number of elements that is sent as bf16.
const ROUNDED: u64 = 32_768;

fn check(command: &Command<'_>, out: &mut Vec<Diagnostic>) {
    let line = command.line;
    let Some(servers) = line.servers().filter(|_| line.splits_tensors()) else {
        return;
    };
    let [a, b] = servers.as_slice() else { return };
    let devices = command.placement.devices.len();
    // If the number of devices is assumed, this machine may lack devices.
    if a == b || !(devices == 2 || command.assumed) {
        return;
    }
    let Some(width) = command.file.count(&command.file.key("embedding_length")) else {
        return;
    };
    let tokens = ROUNDED.div_ceil(width.max(1));
    let unless = match command.assumed {
        true => ", unless this machine has a device",
        false => "",
    };
    let message = message!(
        "two servers add sums of 32768 or more elements in bf16: prompts of at least {} tokens (measured on 0.8.0, \
         RPC){}",
        tokens,
        unless
    );
    let note = LINT.finding("--rpc", message);
    out.push(note.help("put GGML_RPC_NO_COMM=1 before the command to add in f32"));
}
