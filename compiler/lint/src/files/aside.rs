use tpc_ir::Code;

use super::{Check, EntityKind, File, Lint};
use tpc_core::format::bytes;
use tpc_diag::{Diagnostic, Quantity, message};
use tpc_gguf::TensorName;

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Tensor,
    code: Code::note(
        "TPC0602",
        "weights are also stored in an older form",
        "The file has some weights twice: in the form that the model uses, and in an older form that only takes space.",
    )
    .example("a Qwen 3 Next with `ssm_in.weight`, `attn_qkv.weight` and `attn_gate.weight`.")
    .cure("convert the model again for a smaller file."),
    check: Check::File(check),
};

fn check(file: &File<'_>, out: &mut Vec<Diagnostic>) {
    let Some(model) = file.model else { return };
    let drafts = |n: &str| {
        TensorName::parse(n)
            .block()
            .is_some_and(|(layer, _)| u64::from(layer) >= model.summary.n_layer)
    };
    // Blocks for draft tokens depend on the options.
    let aside = model.summary.ignored.iter().filter(|n| !drafts(n));
    let aside: Vec<&String> = aside.collect();
    let Some(first) = aside.first() else { return };
    let sizes = aside.iter().filter_map(|n| file.header().tensor(n));
    let size: u64 = sizes.map(|t| t.bytes).sum();
    let size = Quantity(bytes(size));
    let message = match aside.len() - 1 {
        0 => message!(
            "{} ({}) is ignored: an older form of another tensor",
            first,
            size
        ),
        more => message!(
            "{} and {} more ({}) are ignored: older forms of other tensors",
            first,
            more,
            size
        ),
    };
    let note = LINT.finding(*first, message);
    out.push(note.help("convert the model again for a smaller file"));
}
