//! Tensor splits without flash attention.

use tpc_ir::Code;

use super::{Check, Line, Lint, Names};
use tpc_diag::Diagnostic;
use tpc_ggml::llama_cpp::Setting;

/// The lint.
pub(crate) static LINT: Lint = Lint {
    names: Names::Option,
    code: Code::error(
        "TPC0904",
        "no fused attention under llama.cpp's tensor split",
        "`-sm tensor` needs flash attention in llama.cpp (`SPLIT_MODE_TENSOR requires flash_attn to be \
         enabled`): with `-fa off` it creates no context. tpc always fuses attention.",
    )
    .example("`-sm tensor -fa off`.")
    .cure("`-fa on`, or leave it out."),
    check: Check::Line(check),
};

fn check(line: &Line<'_>, out: &mut Vec<Diagnostic>) {
    if line.splits_tensors() && line.command.is_off(Setting::FlashAttention) {
        let message = "llama.cpp creates no context: -sm tensor requires flash attention";
        let help = "-fa on, or leave it out; tpc always fuses attention";
        out.push(Diagnostic::new(&LINT.code, "-fa", message).help(help));
    }
}
