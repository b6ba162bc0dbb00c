//! Different numbers of tokens and embeddings.

use tpc_ir::Code;

use super::{Check, EntityKind, File, Lint};
use tpc_diag::{Diagnostic, message};
use tpc_gguf::MetaValue;

/// The declaration of the lint.
pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Key,
    code: Code::warning(
        "TPC0603",
        "vocabulary and embedding differ",
        "The length of the tokenizer's list, `vocab_size` and the number of rows of `token_embd.weight` differ: \
         some tokens have no embedding, or some rows no token. Engines that compare them refuse the file.",
    )
    .example("a list of 32000 tokens and an embedding that was padded to 32064 rows.")
    .cure("pad the list of tokens, or cut the rows, when the model is converted."),
    check: Check::File(check),
};

fn check(file: &File<'_>, out: &mut Vec<Diagnostic>) {
    let Some(rows) = file.header().tensor("token_embd.weight").map(|t| t.ne[1]) else {
        return;
    };
    let tokens = match file.value("tokenizer.ggml.tokens") {
        Some(MetaValue::Array(list)) => Some(list.len() as u64),
        _ => None,
    };
    let size_key = file.key("vocab_size");
    let found = [
        ("tokenizer.ggml.tokens".to_owned(), tokens),
        (size_key.clone(), file.count(&size_key)),
    ];
    for (key, n) in found {
        let Some(n) = n.filter(|&n| n != rows && n > 0) else {
            continue;
        };
        let message = message!(
            "{} has {} tokens, but token_embd.weight has {} rows",
            key,
            n,
            rows
        );
        let help = "make them equal when the model is converted";
        out.push(LINT.finding(key, message).help(help));
    }
}
