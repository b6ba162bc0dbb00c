use tpc_ir::Code;

use super::{Check, EntityKind, File, Lint};
use tpc_diag::{Diagnostic, message};
use tpc_gguf::MetaValue;

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Key,
    code: Code::warning(
        "TPC0605",
        "the tokenizer's lists differ in length",
        "`tokenizer.ggml.scores` or `tokenizer.ggml.token_type` is not as long as `tokenizer.ggml.tokens`. Engines \
         read beyond the shorter list, or refuse the file.",
    )
    .example("tokens were added without types.")
    .cure("write one entry per token in every list."),
    check: Check::File(check),
};

fn check(file: &File<'_>, out: &mut Vec<Diagnostic>) {
    let len = |key: &str| match file.value(key) {
        Some(MetaValue::Array(list)) => Some(list.len()),
        _ => None,
    };
    let Some(tokens) = len("tokenizer.ggml.tokens") else {
        return;
    };
    for key in ["tokenizer.ggml.scores", "tokenizer.ggml.token_type"] {
        let Some(n) = len(key).filter(|&n| n != tokens) else {
            continue;
        };
        let message = message!(
            "{} has {} entries, but tokenizer.ggml.tokens has {}",
            key,
            n,
            tokens
        );
        let help = message!("write {} entries, one per token", tokens);
        out.push(LINT.finding(key, message).help(help));
    }
}
