//! Data that were never written.

use tpc_ir::Code;

use super::{Check, EntityKind, File, Lint};
use crate::view::layered;
use tpc_core::format::bytes;
use tpc_diag::{Diagnostic, Quantity, message};

/// The lint.
pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Tensor,
    code: Code::warning(
        "TPC0616",
        "a tensor of zeros",
        "The data of a matrix are zeros wherever they were looked at (32 places). Downloads that were cut off \
         and resumed, and files that were extended to their full size, have such holes; the file is of the right \
         length all the same.",
    )
    .example("a download that allocates the file first and fails half-way.")
    .cure("compare the file's checksum, and download it again."),
    check: Check::File(check),
};

/// Places that are looked at, and bytes at each.
const PLACES: usize = 32;
const WINDOW: usize = 64;

fn check(file: &File<'_>, out: &mut Vec<Diagnostic>) {
    for t in file.header().tensors().iter().filter(|t| t.n_dims > 1) {
        let Some(data) = file.file.tensor_data(t) else {
            return;
        };
        let last = data.len().saturating_sub(WINDOW);
        let zero = (0..PLACES).all(|i| {
            let start = last / PLACES * i;
            let end = data.len().min(start + WINDOW);
            data[start..end].iter().all(|&b| b == 0)
        });
        if zero && !data.is_empty() {
            let message = message!(
                "{} ({}) is zeros wherever it was looked at",
                layered(&t.name),
                Quantity(bytes(t.bytes))
            );
            let help = "compare the file's checksum, and download it again";
            out.push(LINT.finding(&t.name, message).help(help));
        }
    }
}
