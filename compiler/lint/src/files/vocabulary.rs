use tpc_ir::Code;

use super::{Check, EntityKind, File, Lint};
use tpc_diag::{Diagnostic, message};
use tpc_gguf::MetaValue;

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Key,
    code: Code::warning(
        "TPC0603",
        "vocabulary and embedding have different sizes",
        "The tokenizer's list, `vocab_size` and the rows of `token_embd.weight` differ in number. Engines that compare \
         them refuse the file.",
    )
    .example("32000 tokens and an embedding padded to 32064 rows.")
    .cure("pad the list of tokens, or cut the rows, when you convert the model."),
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
        let help = "make the numbers equal when you convert the model";
        out.push(LINT.finding(key, message).help(help));
    }
}
