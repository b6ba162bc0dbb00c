//! Attention that is not fused.

use tpc_ir::Code;

use super::{Check, Command, EntityKind, Lint};
use tpc_diag::Diagnostic;
use tpc_ggml::llama_cpp::Setting;

/// The declaration of the lint.
pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Option,
    code: Code::note(
        "TPC0930",
        "attention is not fused",
        "With `-fa off` llama.cpp computes attention in three ops and keeps the scores of a batch in memory: heads × tokens of a \
         batch × cells × 4 bytes, on each device that has a layer. It writes and reads them, so prompts take longer, too. tpc \
         always fuses attention. A tensor split without flash attention is an error (TPC0904).",
    )
    .example("`-fa off -c 32768`.")
    .cure("`-fa on`, or leave it out, unless a device lacks the kernel."),
    check: Check::Command(check),
};

fn check(command: &Command<'_>, out: &mut Vec<Diagnostic>) {
    let Some(given) = command.line.last(Setting::FlashAttention) else {
        return;
    };
    if command.line.is_off(Setting::FlashAttention) && !command.splits_tensors() {
        let message = "llama.cpp keeps the scores of a whole batch in memory: it takes more memory, and prompts take longer";
        let help = "-fa on, or leave it out, unless a device lacks the kernel";
        out.push(LINT.finding(&given.spelling, message).help(help));
    }
}
