use tpc_ir::Code;

use super::{Check, EntityKind, File, Lint};
use crate::view::layer_name;
use tpc_core::format::bytes;
use tpc_diag::{Diagnostic, Quantity, message};

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Tensor,
    code: Code::warning(
        "TPC0616",
        "a matrix is all zeros",
        "A matrix is zero at all 32 sampled places. Resumed downloads and preallocated files have such holes, although \
         the file's length is right.",
    )
    .example("a download that allocates the file and fails half-way.")
    .cure("compare the checksum, and download the file again."),
    check: Check::File(check),
};

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
                "{} ({}) is zero at all sampled places",
                layer_name(&t.name),
                Quantity(bytes(t.bytes))
            );
            let help = "compare the checksum, and download the file again";
            out.push(LINT.finding(&t.name, message).help(help));
        }
    }
}
