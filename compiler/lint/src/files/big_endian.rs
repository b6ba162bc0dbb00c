use tpc_ir::Code;

use super::{Check, EntityKind, File, Lint};
use tpc_diag::Diagnostic;
use tpc_gguf::Endianness;

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::File,
    code: Code::warning(
        "TPC0619",
        "a big-endian file",
        "tpc reads the file, but other engines map tensor data directly and refuse it on a little-endian machine.",
    )
    .example("a model converted for an IBM Z.")
    .cure("convert the file with `gguf_convert_endian.py`."),
    check: Check::File(check),
};

fn check(file: &File<'_>, out: &mut Vec<Diagnostic>) {
    if file.header().endianness == Endianness::Big {
        let message = "the file is big-endian: little-endian machines cannot map its data";
        let note = LINT.finding("file", message);
        out.push(note.help("convert the file with gguf_convert_endian.py"));
    }
}
