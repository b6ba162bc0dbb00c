//! Weights that are there twice.

use tpc_ir::Code;

use super::{Check, EntityKind, File, Lint};
use tpc_core::format::bytes;
use tpc_diag::{Diagnostic, Quantity, message};
use tpc_gguf::TensorName;

/// The lint.
pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Tensor,
    code: Code::note(
        "TPC0602",
        "older forms of tensors that the file has as well",
        "The file has the weights of a part twice: in the form that the model is computed with, and in an older \
         one that is left aside. It takes space in the file.",
    )
    .example("`ssm_in.weight` beside `attn_qkv.weight` and `attn_gate.weight` of a Qwen 3 Next.")
    .cure("convert the model again, to a smaller file."),
    check: Check::File(check),
};

fn check(file: &File<'_>, out: &mut Vec<Diagnostic>) {
    let Some(model) = file.model else { return };
    let drafts = |n: &str| {
        TensorName::parse(n)
            .block()
            .is_some_and(|(layer, _)| u64::from(layer) >= model.summary.n_layer)
    };
    // Blocks that draft tokens are a matter of the options.
    let aside = model.summary.ignored.iter().filter(|n| !drafts(n));
    let aside: Vec<&String> = aside.collect();
    let Some(first) = aside.first() else { return };
    let sizes = aside.iter().filter_map(|n| file.header().tensor(n));
    let size: u64 = sizes.map(|t| t.bytes).sum();
    let message = message!(
        "{} and {} more ({}) are older forms of other tensors",
        first,
        aside.len() - 1,
        Quantity(bytes(size))
    );
    let note = LINT.finding(*first, message);
    out.push(note.help("convert the model again, to a smaller file"));
}
