use tpc_ir::Code;

use super::{Check, EntityKind, File, Lint};
use tpc_diag::{Diagnostic, message};
use tpc_gguf::DEFAULT_ALIGNMENT;

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Key,
    code: Code::warning(
        "TPC0612",
        "tensors aligned to less than 32 bytes",
        "`general.alignment` is below the default of 32. Vector loads of mapped tensors may fail or be slow, and some \
         readers refuse the file.",
    )
    .example("`general.alignment = 8`.")
    .cure("write the file with an alignment of 32 or more."),
    check: Check::File(check),
};

fn check(file: &File<'_>, out: &mut Vec<Diagnostic>) {
    let alignment = file.header().alignment;
    if alignment < DEFAULT_ALIGNMENT {
        let message = message!("general.alignment is {} bytes", alignment);
        let help = message!("write {} (the default) or more", DEFAULT_ALIGNMENT);
        out.push(LINT.finding("general.alignment", message).help(help));
    }
}
