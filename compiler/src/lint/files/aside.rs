//! Tensors that are known and left out.

use tpc_ir::CodeDoc;

use super::{Check, File, Lint, Names};
use crate::diag::Diagnostic;
use crate::report::bytes;

/// The lint.
pub(in crate::lint) const LINT: Lint = Lint {
    names: Names::Tensor,
    doc: CodeDoc {
        code: "TPC0602",
        title: "tensors that the plan leaves aside",
        doc: "The file has tensors that are known and not part of the planned graph: blocks that guess further \
              tokens ahead, or older forms of other tensors. The plan's bytes are without them.\n\
              Example: `blk.64.nextn.eh_proj.weight` of a model with multi-token prediction.\n\
              Cure: none is needed.",
    },
    check: Check::File(check),
};

fn check(file: &File<'_>, out: &mut Vec<Diagnostic>) {
    let Some(model) = file.model else { return };
    let aside = &model.summary.aside;
    let Some(first) = aside.first() else { return };
    let sizes = aside.iter().filter_map(|n| file.header().tensor(n));
    let size: u64 = sizes.map(|t| t.bytes).sum();
    let message = format!(
        "{first} and {} more ({}) are not part of the graph",
        aside.len() - 1,
        bytes(size)
    );
    let note = Diagnostic::note("TPC0602", first, message);
    out.push(note.help("none is needed: the model runs without them"));
}
