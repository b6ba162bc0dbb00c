//! Sums over two RPC servers, which are rounded to bf16.

use tpc_ir::Code;

use super::{Check, Command, EntityKind, Lint};
use tpc_diag::{Diagnostic, message};

/// The declaration of the lint.
pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Option,
    code: Code::note(
        "TPC0931",
        "two RPC servers add in bf16",
        "Under `-sm tensor` two RPC servers without a local device add their partial sums themselves. They send sums of \
         32,768 elements and more as bf16: the prompt's tokens times the embedding's length. Measured on 0.8.0, RPC: NMSE 6e-6 \
         instead of 4e-9 for llama, 1.4e-2 instead of 1.6e-4 for qwen35moe in q8_0. Decoding of one token is not touched below \
         a length of 32,768. With `GGML_RPC_NO_COMM=1` in llama.cpp's environment the sums go through llama.cpp in f32.",
    )
    .example("`-sm tensor --rpc 10.0.0.2:50052,10.0.0.3:50052` on a machine without a device.")
    .cure("`GGML_RPC_NO_COMM=1` before the command."),
    check: Check::Command(check),
};

/// The minimum number of elements of a sum that is sent as bf16.
const ROUNDED: u64 = 32_768;

fn check(command: &Command<'_>, out: &mut Vec<Diagnostic>) {
    let line = command.line;
    let Some(servers) = line.servers().filter(|_| line.splits_tensors()) else {
        return;
    };
    let [a, b] = servers.as_slice() else { return };
    let devices = command.placement.devices.len();
    // If the number of devices is assumed, this machine may have no device.
    if a == b || !(devices == 2 || command.assumed) {
        return;
    }
    let Some(width) = command.file.count(&command.file.key("embedding_length")) else {
        return;
    };
    let tokens = ROUNDED.div_ceil(width.max(1));
    let unless = match command.assumed {
        true => "; not where this machine adds a device of its own",
        false => "",
    };
    let message = message!(
        "two servers add sums of 32768 elements and more in bf16: prompts of {} tokens and more (measured on 0.8.0, RPC){}",
        tokens,
        unless
    );
    let note = LINT.finding("--rpc", message);
    out.push(note.help("GGML_RPC_NO_COMM=1 before the command sums in f32"));
}
