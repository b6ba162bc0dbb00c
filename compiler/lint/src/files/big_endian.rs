//! Files of big-endian machines.

use tpc_ir::CodeDoc;

use super::{Check, File, Lint, Names};
use tpc_diag::Diagnostic;
use tpc_gguf::Endianness;

/// The lint.
pub(crate) const LINT: Lint = Lint {
    names: Names::File,
    doc: CodeDoc {
        code: "TPC0619",
        title: "a file of the other byte order",
        doc: "The file is big-endian. tpc reads it, but the usual engines map tensor data as they are, and refuse \
              such a file on a little-endian machine.\n\
              Example: a model converted for an IBM Z.\n\
              Cure: convert it for the machine that runs it (`gguf_convert_endian.py`).",
    },
    check: Check::File(check),
};

fn check(file: &File<'_>, out: &mut Vec<Diagnostic>) {
    if file.header().endianness == Endianness::Big {
        let message = "the file is big-endian: little-endian machines cannot map its data";
        let note = Diagnostic::warning("TPC0619", "file", message);
        out.push(note.help("gguf_convert_endian.py converts it"));
    }
}
