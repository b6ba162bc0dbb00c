//! Alignments that are too small to map.

use tpc_ir::Code;

use super::{Check, EntityKind, File, Lint};
use tpc_diag::{Diagnostic, message};
use tpc_gguf::DEFAULT_ALIGNMENT;

/// The lint.
pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Key,
    code: Code::warning(
        "TPC0612",
        "tensors aligned to less than 32 bytes",
        "`general.alignment` is below 32, the value of files that do not say. Tensors of a mapped file then \
         start where vector loads of 32 bytes are slow or not allowed, and readers that assume 32 refuse the \
         file.",
    )
    .example("`general.alignment = 8`.")
    .cure("write the file with an alignment of 32 or more."),
    check: Check::File(check),
};

fn check(file: &File<'_>, out: &mut Vec<Diagnostic>) {
    let alignment = file.header().alignment;
    if alignment < DEFAULT_ALIGNMENT {
        let message = message!("general.alignment is {} bytes", alignment);
        let help = message!("{}, which files have that do not say", DEFAULT_ALIGNMENT);
        out.push(LINT.finding("general.alignment", message).help(help));
    }
}
