//! Tensor splits without flash attention.

use tpc_ir::CodeDoc;

use super::{Check, Line, Lint, Names};
use tpc_diag::Diagnostic;
use tpc_ggml::llama_cpp::Meaning;

/// The lint.
pub(crate) const LINT: Lint = Lint {
    names: Names::Option,
    doc: CodeDoc {
        code: "TPC0904",
        title: "no fused attention under llama.cpp's tensor split",
        doc: "`-sm tensor` needs flash attention in llama.cpp (`SPLIT_MODE_TENSOR requires flash_attn to be \
              enabled`): with `-fa off` it creates no context. tpc always fuses attention.\n\
              Example: `-sm tensor -fa off`.\n\
              Cure: `-fa on`, or leave it out.",
    },
    check: Check::Line(check),
};

fn check(line: &Line<'_>, out: &mut Vec<Diagnostic>) {
    if line.splits_tensors() && line.command.is_off(Meaning::FlashAttention) {
        let message = "llama.cpp creates no context: -sm tensor requires flash attention";
        let help = "-fa on, or leave it out; tpc always fuses attention";
        out.push(Diagnostic::error("TPC0904", "-fa", message).help(help));
    }
}
