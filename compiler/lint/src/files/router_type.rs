//! Quantised routers.

use tpc_ir::Code;

use super::{Check, EntityKind, File, Lint};
use crate::view::layer_name;
use tpc_diag::{Diagnostic, message};

/// The declaration of the lint.
pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Tensor,
    code: Code::warning(
        "TPC0613",
        "a quantised router",
        "The matrix that chooses the experts of a token (`ffn_gate_inp`) is quantised. It is small, so little is \
         gained, but near ties are decided differently, and tokens go to other experts than in the trained \
         model. Quantisers leave it alone by default.",
    )
    .example("`blk.0.ffn_gate_inp.weight` in q4_0.")
    .cure("keep it in f32 (or f16) when the model is quantised."),
    check: Check::File(check),
};

fn check(file: &File<'_>, out: &mut Vec<Diagnostic>) {
    for (_, t) in file.of_blocks("ffn_gate_inp.weight") {
        if t.dtype.is_quantised() {
            let message = message!(
                "{} is {}: near ties may choose other experts",
                layer_name(&t.name),
                t.dtype.name()
            );
            let help = "keep it in f32 when the model is quantised";
            out.push(LINT.finding(&t.name, message).help(help));
        }
    }
}
