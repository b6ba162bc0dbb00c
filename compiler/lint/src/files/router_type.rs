use tpc_ir::Code;

use super::{Check, EntityKind, File, Lint};
use crate::view::layer_name;
use tpc_diag::{Diagnostic, message};

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Tensor,
    code: Code::warning(
        "TPC0613",
        "a quantised router",
        "The router (`ffn_gate_inp`) is quantised. That saves little, but near ties may select other experts than in \
         the trained model. Quantisers skip routers by default.",
    )
    .example("`blk.0.ffn_gate_inp.weight` in q4_0.")
    .cure("keep the router in f32 or f16 when you quantise the model."),
    check: Check::File(check),
};

fn check(file: &File<'_>, out: &mut Vec<Diagnostic>) {
    for (_, t) in file.of_blocks("ffn_gate_inp.weight") {
        if t.dtype.is_quantised() {
            let message = message!(
                "{} is {}: near ties may select other experts",
                layer_name(&t.name),
                t.dtype.name()
            );
            let help = "keep the router in f32 when you quantise the model";
            out.push(LINT.finding(&t.name, message).help(help));
        }
    }
}
