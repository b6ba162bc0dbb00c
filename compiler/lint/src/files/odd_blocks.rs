use tpc_ir::Code;

use super::{Check, EntityKind, File, Lint};
use crate::view::layer_name;
use tpc_diag::{Diagnostic, message};
use tpc_gguf::TensorInfo;

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Tensor,
    code: Code::note(
        "TPC0611",
        "2, 4 or 8 devices cannot share a width evenly",
        "A split of the feed-forward width also splits the rows of the down projection, which consist of quantisation \
         blocks. If the number of devices does not divide the blocks, the parts are uneven or share blocks.",
    )
    .example("rows of 11008 in q4_k are 43 blocks of 256, in q8_0 344 blocks of 32.")
    .cure("no action needed; a type with shorter blocks or another number of devices avoids it."),
    check: Check::File(check),
};

const CONTRACTED: [&str; 3] = [
    "ffn_down.weight",
    "ffn_down_exps.weight",
    "ffn_down_shexp.weight",
];

struct Uneven<'f> {
    role: &'static str,
    tensor: &'f TensorInfo,
    blocks: u64,
    /// Number of blocks per row with 32 elements per block.
    short: u64,
}

impl Uneven<'_> {
    fn block(&self) -> u64 {
        self.tensor.dtype.block_len()
    }

    fn is_like(&self, other: &Uneven<'_>) -> bool {
        let kind = |u: &Uneven<'_>| (u.role, u.tensor.ne[0], u.block());
        kind(self) == kind(other)
    }
}

/// Returns the device counts out of 2, 4 and 8 that do not divide the number of blocks.
fn odd(blocks: u64) -> Vec<u64> {
    [2, 4, 8]
        .into_iter()
        .filter(|n| !blocks.is_multiple_of(*n))
        .collect()
}

fn list(all: &[u64]) -> String {
    let all: Vec<String> = all.iter().map(u64::to_string).collect();
    all.join(", ")
}

/// Returns the matrix if blocks of 32 would divide better.
fn uneven<'f>(role: &'static str, tensor: &'f TensorInfo) -> Option<Uneven<'f>> {
    let (len, block) = (tensor.ne[0], tensor.dtype.block_len());
    let short = (block > 32 && len.is_multiple_of(32)).then_some(len / 32)?;
    let blocks = len / block;
    (odd(short).len() < odd(blocks).len()).then_some(Uneven {
        role,
        tensor,
        blocks,
        short,
    })
}

fn all<'f>(file: &File<'f>) -> Vec<Uneven<'f>> {
    let of_role = |role: &&'static str| {
        let role = *role;
        let tensors = file.of_blocks(role).into_iter();
        tensors.filter_map(move |(_, t)| uneven(role, t))
    };
    CONTRACTED.iter().flat_map(of_role).collect()
}

/// True if the block length prevents `devices` devices from sharing the feed-forward widths evenly.
pub fn is_uneven(file: &File<'_>, devices: usize) -> bool {
    let devices = devices as u64;
    all(file)
        .iter()
        .any(|u| !u.blocks.is_multiple_of(devices.max(1)))
}

fn check(file: &File<'_>, out: &mut Vec<Diagnostic>) {
    let all = all(file);
    let Some(first) = all.first() else {
        return;
    };
    let others = match all.iter().all(|u| u.is_like(first)) {
        true => "",
        false => "; other widths too",
    };
    for u in all.iter().filter(|u| u.is_like(first)) {
        let message = message!(
            "{}: rows of {} are {} blocks of {}, which {} devices cannot share evenly{}",
            layer_name(&u.tensor.name),
            u.tensor.ne[0],
            u.blocks,
            u.block(),
            list(&odd(u.blocks)),
            others
        );
        let rest = match odd(u.short).as_slice() {
            [] => "2, 4 and 8 devices can share evenly".into(),
            rest => message!("only {} devices cannot share evenly", list(rest)),
        };
        let help = message!(
            "a type with blocks of 32 makes {} blocks, which {}",
            u.short,
            rest
        );
        out.push(LINT.finding(&u.tensor.name, message).help(help));
    }
}
