use tpc_ir::Code;

use super::{Check, EntityKind, File, Lint};
use tpc_core::format::bytes;
use tpc_diag::{Diagnostic, Quantity, message};
use tpc_gguf::TensorName;

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Tensor,
    code: Code::warning(
        "TPC0601",
        "blocks beyond block_count",
        "The file has blocks with numbers of `block_count` or more. Engines do not compute them.",
    )
    .example("`blk.32.attn_q.weight` with a `llama.block_count` of 32: blocks are numbered from 0.")
    .cure("set `block_count` to the number of blocks."),
    check: Check::File(check),
};

fn check(file: &File<'_>, out: &mut Vec<Diagnostic>) {
    let key = file.key("block_count");
    let Some(count) = file.count(&key) else {
        return;
    };
    let tensors = file.header().tensors().iter();
    let beyond: Vec<_> = tensors
        .filter(|t| {
            TensorName::parse(&t.name)
                .block()
                .is_some_and(|(layer, _)| u64::from(layer) >= count)
        })
        .collect();
    let Some(first) = beyond.first() else { return };
    let layers = beyond
        .iter()
        .filter_map(|t| Some(TensorName::parse(&t.name).block()?.0));
    let last = layers.max().unwrap_or(0);
    let message = message!(
        "{} tensors of blocks {} to {} ({}) are not computed: {} is {}",
        beyond.len(),
        count,
        last,
        Quantity(bytes(beyond.iter().map(|t| t.bytes).sum())),
        key,
        count
    );
    let help = message!("set {} to {} to include them", key, u64::from(last) + 1);
    out.push(LINT.finding(&first.name, message).help(help));
}
