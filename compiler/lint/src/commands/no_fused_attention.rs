//! A tensor split without flash attention.

use tpc_ir::Code;

use super::{Check, Command, EntityKind, Lint};
use tpc_diag::Diagnostic;
use tpc_ggml::llama_cpp::Setting;

/// The declaration of the lint.
pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Option,
    code: Code::error(
        "TPC0904",
        "no flash attention under llama.cpp's tensor split",
        "In llama.cpp, `-sm tensor` requires flash attention (`SPLIT_MODE_TENSOR requires flash_attn to be \
         enabled`): with `-fa off` it creates no context. tpc always uses fused attention.",
    )
    .example("`-sm tensor -fa off`.")
    .cure("`-fa on`, or leave it out."),
    check: Check::Command(check),
};

fn check(command: &Command<'_>, out: &mut Vec<Diagnostic>) {
    if command.splits_tensors() && command.line.is_off(Setting::FlashAttention) {
        let message = "llama.cpp creates no context: -sm tensor requires flash attention";
        let help = "-fa on, or leave it out; tpc always uses fused attention";
        out.push(LINT.finding("-fa", message).help(help));
    }
}
