//! Tensor data that was never written.

use tpc_ir::Code;

use super::{Check, EntityKind, File, Lint};
use crate::view::layer_name;
use tpc_core::format::bytes;
use tpc_diag::{Diagnostic, Quantity, message};

/// The declaration of the lint.
pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Tensor,
    code: Code::warning(
        "TPC0616",
        "a tensor of zeros",
        "A matrix is zero at all 32 places that were sampled. Resumed downloads and files that were extended to \
         their full size have such holes, although the length of the file is right.",
    )
    .example("a download that allocates the file first and fails half-way.")
    .cure("compare the file's checksum, and download it again."),
    check: Check::File(check),
};

/// The number of sampled places, and the bytes read at each.
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
                "{} ({}) is zero wherever it was sampled",
                layer_name(&t.name),
                Quantity(bytes(t.bytes))
            );
            let help = "compare the file's checksum, and download it again";
            out.push(LINT.finding(&t.name, message).help(help));
        }
    }
}
