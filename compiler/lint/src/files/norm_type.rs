use tpc_ir::Code;
use tpc_ir::DType;

use super::{Check, EntityKind, File, Lint};
use crate::view::layer_name;
use tpc_diag::{Diagnostic, message};

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Tensor,
    code: Code::warning(
        "TPC0614",
        "a norm or bias that is not f32",
        "A vector, such as a norm's weight or a bias, is in f16 or bf16. Most kernels of ggml's back ends take only \
         f32 vectors, and some refuse the graph.",
    )
    .example("`blk.0.attn_norm.weight` in bf16, from a converter that uses one type for all tensors.")
    .cure("write vectors in f32, as converters do."),
    check: Check::File(check),
};

fn check(file: &File<'_>, out: &mut Vec<Diagnostic>) {
    for t in file.header().tensors() {
        if t.n_dims == 1 && matches!(t.dtype, DType::F16 | DType::Bf16) {
            let message = message!(
                "{} is a vector of {} in {}",
                layer_name(&t.name),
                t.ne[0],
                t.dtype.name()
            );
            let help = "write vectors in f32, as converters do";
            out.push(LINT.finding(&t.name, message).help(help));
        }
    }
}
