//! The split mode that tpc does not have.

use tpc_ir::CodeDoc;

use super::{Check, Line, Lint, Names};
use tpc_diag::Diagnostic;
use tpc_ggml::llama_cpp::Meaning;

/// The lint.
pub(crate) const LINT: Lint = Lint {
    names: Names::Option,
    doc: CodeDoc {
        code: "TPC0912",
        title: "rows are not tensors",
        doc: "`-sm row` of llama.cpp divides single matrices by rows and keeps the KV cache and all else on the \
              main device, so each matrix product ends with a transfer. tpc has no such mode: it takes `row` for \
              `tensor`, which also splits attention and the cache.\n\
              Example: `-sm row -ts 1,1`.\n\
              Cure: `-sm tensor`, there too.",
    },
    check: Check::Line(check),
};

fn check(line: &Line<'_>, out: &mut Vec<Diagnostic>) {
    if line.command.value(Meaning::SplitMode) == Some("row") {
        let message = "llama.cpp splits matrices by rows and keeps the KV cache on the main device; tpc plans a tensor split";
        out.push(Diagnostic::warning("TPC0912", "-sm", message).help("-sm tensor, there too"));
    }
}
