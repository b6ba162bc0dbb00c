//! Widths whose quantisation blocks do not divide evenly.

use tpc_ir::Code;

use super::{Check, EntityKind, File, Lint};
use crate::view::layered;
use tpc_diag::{Diagnostic, message};

/// The declaration of the lint.
pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Tensor,
    code: Code::note(
        "TPC0611",
        "a width whose blocks 2, 4 or 8 devices cannot share",
        "Splitting a feed-forward width also splits the rows of the matrix that is multiplied by it, and these \
         consist of quantisation blocks. Here the number of blocks is no multiple of 2, 4 or 8, so that many \
         devices get uneven parts or share blocks. The help says whether shorter blocks would divide evenly.",
    )
    .example("rows of 11008 in q4_k are 43 blocks of 256, in q8_0 344 blocks of 32.")
    .cure("none is needed; a type with shorter blocks for this tensor, or another number of devices."),
    check: Check::File(check),
};

/// The matrices that are multiplied by what a feed-forward width holds.
const CONTRACTED: [&str; 3] = [
    "ffn_down.weight",
    "ffn_down_exps.weight",
    "ffn_down_shexp.weight",
];

fn check(file: &File<'_>, out: &mut Vec<Diagnostic>) {
    for role in CONTRACTED {
        for (_, t) in file.of_blocks(role) {
            let block = t.dtype.block_len();
            let odd = |blocks: u64| -> Vec<u64> {
                [2, 4, 8]
                    .into_iter()
                    .filter(|n| !blocks.is_multiple_of(*n))
                    .collect()
            };
            let blocks = t.ne[0] / block;
            let uneven = odd(blocks);
            if block == 1 || uneven.is_empty() {
                continue;
            }
            let list = |all: &[u64]| {
                let all: Vec<String> = all.iter().map(u64::to_string).collect();
                all.join(", ")
            };
            // What no type divides better is as it is.
            let short = (block > 32 && t.ne[0].is_multiple_of(32)).then(|| t.ne[0] / 32);
            let Some(short) = short.filter(|&n| odd(n).len() < uneven.len()) else {
                continue;
            };
            let message = message!(
                "{}: rows of {} are {} blocks of {} ({}), which {} devices cannot share evenly",
                layered(&t.name),
                t.ne[0],
                blocks,
                block,
                t.dtype.name(),
                list(&uneven)
            );
            let rest = match odd(short).as_slice() {
                [] => "2, 4 and 8 devices can share evenly".into(),
                rest => message!("only {} devices cannot share evenly", list(rest)),
            };
            let help = message!(
                "a type with blocks of 32 makes {} of them, which {}",
                short,
                rest
            );
            out.push(LINT.finding(&t.name, message).help(help));
        }
    }
}
