use tpc_ir::{Code, Severity};

use super::{Check, Command, EntityKind, Lint};
use tpc_core::beside::Difference;
use tpc_diag::{Diagnostic, Message, Quantity, message};

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Option,
    code: Code::error(
        "TPC0932",
        "the draft's tokens differ from the model's",
        "llama.cpp compares the tokenizers' kinds, the numbers of tokens (up to 128 may be missing) and the tokens' \
         text from the fifth on. It refuses a draft model (`draft-simple`) with different tokens. It does not \
         compare other kinds of drafts: a mismatch only wastes time and is a warning.",
    )
    .example("`-m qwen3-32b.gguf -md llama-3.2-1b.gguf`.")
    .cure("use a draft of the model's family.")
    .with_milder_severity(Severity::Warning),
    check: Check::Command(check),
};

fn check(command: &Command<'_>, out: &mut Vec<Diagnostic>) {
    let beside = &command.placement.beside;
    let Some((draft, difference)) = beside
        .iter()
        .find_map(|b| Some((&b.file, b.difference.as_ref()?)))
    else {
        return;
    };
    let how: Message = match difference {
        Difference::Kind(model, draft) => {
            message!(
                "the model's tokenizer is {}, the draft's {}",
                Quantity(model),
                Quantity(draft)
            )
        }
        Difference::Count(model, draft) => {
            message!("the model has {} tokens, the draft {}", *model, *draft)
        }
        Difference::Token(n, model, draft) => message!(
            "token {} is {} in the model and {} in the draft",
            *n,
            Quantity(format!("{model:?}")),
            Quantity(format!("{draft:?}"))
        ),
    };
    let mut kinds = command
        .line
        .draft_kinds()
        .filter(|k| k.starts_with("draft-"));
    let is_compared = kinds.all(|k| k == "draft-simple");
    let message = message!("the tokens of {} differ from the model's: {}", draft, how);
    let help = "use a draft of the model's family";
    out.push(match is_compared {
        true => LINT.finding("-md", message).help(help),
        false => LINT.milder_finding("-md", message).help(help),
    });
}
