use std::collections::BTreeMap;

use tpc_ir::Code;

use super::{Check, EntityKind, File, Lint};
use crate::numbers;
use tpc_diag::{Diagnostic, Message, message};
use tpc_gguf::TensorName;

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Tensor,
    code: Code::note(
        "TPC0610",
        "a tensor's block length differs between layers",
        "A tensor has different quantisation block lengths in different layers. Devices get whole blocks, so tpc \
         splits layers with longer blocks less evenly.",
    )
    .example("`ffn_down` in iq4_xs (blocks of 256), and in iq4_nl (blocks of 32) if the width did not fit.")
    .cure("no action needed; one type in all layers makes the splits equal."),
    check: Check::File(check),
};

/// Types and layers by block length.
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
        out.push(note.help("no action needed; one type in all layers makes the splits equal"));
    }
}
