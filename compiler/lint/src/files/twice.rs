use tpc_ir::Code;

use super::{Check, EntityKind, File, Lint};
use tpc_core::format::bytes;
use tpc_diag::{Diagnostic, Quantity, message};

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Tensor,
    code: Code::warning(
        "TPC0609",
        "the output is a copy of the embedding",
        "`output.weight` has the same bytes as `token_embd.weight`. A model with tied embeddings needs only \
         `token_embd.weight`.",
    )
    .example("a converter that writes `lm_head` of a tied model.")
    .cure("leave out `output.weight` when you convert the model."),
    check: Check::File(check),
};

fn check(file: &File<'_>, out: &mut Vec<Diagnostic>) {
    let data = |name: &str| {
        let t = file.header().tensor(name)?;
        Some((t, file.file.tensor_data(t)?))
    };
    let (Some((a, embedding)), Some((b, output))) =
        (data("token_embd.weight"), data("output.weight"))
    else {
        return;
    };
    if a.dtype == b.dtype && a.ne == b.ne && embedding == output {
        let message = message!(
            "output.weight is a copy of token_embd.weight ({})",
            Quantity(bytes(b.bytes))
        );
        let help = "leave out output.weight: the embedding serves as both";
        out.push(LINT.finding("output.weight", message).help(help));
    }
}
