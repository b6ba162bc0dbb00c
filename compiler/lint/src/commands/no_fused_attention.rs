//! A command without flash attention.

use tpc_ir::{Code, Severity};

use super::{Check, Command, EntityKind, Lint};
use tpc_diag::Diagnostic;
use tpc_ggml::llama_cpp::Setting;

/// The declaration of the lint.
pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Option,
    code: Code::error(
        "TPC0904",
        "no flash attention",
        "In llama.cpp, `-sm tensor` requires flash attention (`SPLIT_MODE_TENSOR requires flash_attn to be \
         enabled`): with `-fa off` it creates no context. Under other split modes it then keeps the scores of a whole batch in \
         memory, heads × batch × cells × 4 bytes at the widest layer, and reads them back: a note. tpc always fuses attention.",
    )
    .example("`-sm tensor -fa off`.")
    .cure("`-fa on`, or leave it out.")
    .or(Severity::Note),
    check: Check::Command(check),
};

fn check(command: &Command<'_>, out: &mut Vec<Diagnostic>) {
    if command.splits_tensors() && command.line.is_off(Setting::FlashAttention) {
        let message = "llama.cpp creates no context: -sm tensor requires flash attention";
        let help = "-fa on, or leave it out; tpc always uses fused attention";
        out.push(LINT.finding("-fa", message).help(help));
    } else if command.line.is_off(Setting::FlashAttention) {
        let given = command.line.last(Setting::FlashAttention);
        let spelling = given.map_or("-fa", |o| o.spelling.as_str());
        let message = "llama.cpp keeps the scores of a whole batch in memory, and reads them back: it takes more memory and time";
        let help = "-fa on, or leave it out, unless a device lacks the kernel";
        out.push(LINT.milder_finding(spelling, message).help(help));
    }
}
