use tpc_ir::Code;

use super::{Check, EntityKind, File, Lint};
use tpc_diag::{Diagnostic, message};

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Key,
    code: Code::warning(
        "TPC0604",
        "a special token beyond the vocabulary",
        "The embedding has no row for a special token (begin, end, padding, …). Generation may not stop, or reads \
         beyond the table.",
    )
    .example("`tokenizer.ggml.eos_token_id = 128009` in a vocabulary of 128000.")
    .cure("write the id from the tokenizer's configuration."),
    check: Check::File(check),
};

fn check(file: &File<'_>, out: &mut Vec<Diagnostic>) {
    let Some(rows) = file.header().tensor("token_embd.weight").map(|t| t.ne[1]) else {
        return;
    };
    for entry in file.header().metadata().entries() {
        let special = entry.key.starts_with("tokenizer.ggml.") && entry.key.ends_with("_token_id");
        let id = file.count(&entry.key);
        // Absent tokens often have the largest 32-bit number.
        let Some(id) = id.filter(|&id| special && id >= rows && id < u64::from(u32::MAX)) else {
            continue;
        };
        let message = message!(
            "{} is {}, but the embedding has {} rows",
            entry.key,
            id,
            rows
        );
        let help = message!("write an id from 0 to {}", rows - 1);
        out.push(LINT.finding(&entry.key, message).help(help));
    }
}
