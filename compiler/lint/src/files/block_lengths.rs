//! A tensor whose quantisation block length differs between layers.

use std::collections::BTreeMap;

use tpc_ir::Code;

use super::{Check, EntityKind, File, Lint};
use crate::numbers;
use tpc_diag::{Diagnostic, Message, message};
use tpc_gguf::TensorName;

/// The declaration of the lint.
pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Tensor,
    code: Code::note(
        "TPC0610",
        "a tensor with different block lengths in different layers",
        "A tensor has one quantisation block length in some layers and another in others. Ranges of rows end at \
         multiples of the block, so layers are split differently, and those with longer blocks less evenly.",
    )
    .example("`ffn_down` in iq4_xs (blocks of 256) and, where a width did not fit, iq4_nl (blocks of 32).")
    .cure("none is needed; one type for the tensor in all layers makes them alike."),
    check: Check::File(check),
};

/// The layers with each block length, and their types.
type Lengths = BTreeMap<u64, Vec<(u32, &'static str)>>;

fn check(file: &File<'_>, out: &mut Vec<Diagnostic>) {
    let mut roles: BTreeMap<&str, Lengths> = BTreeMap::new();
    for t in file.header().tensors() {
        let block = t.dtype.block_len();
        if let Some((layer, rest)) = TensorName::parse(&t.name).block().filter(|_| block > 1) {
            let lens = roles.entry(rest).or_default();
            lens.entry(block).or_default().push((layer, t.dtype.name()));
        }
    }
    for (role, lens) in roles.iter().filter(|(_, lens)| lens.len() > 1) {
        let shown: Vec<Message> = lens
            .iter()
            .map(|(len, of)| {
                let mut layers: Vec<u32> = of.iter().map(|(l, _)| *l).collect();
                layers.sort_unstable();
                message!("{} ({}) in layers {}", len, of[0].1, numbers(&layers))
            })
            .collect();
        let message = message!("{} has blocks of {}", role, Message::join(shown, ", of "));
        let note = LINT.finding(*role, message);
        out.push(note.help("one type in all layers makes them alike"));
    }
}
