use tpc_core::beside::{Difference, differs};
use tpc_diag::Diagnostic;
use tpc_gguf::GgufFile;

use crate::codes::OTHER_DRAFT;
use crate::error::Error;

/// Checks that a draft model has the model's vocabulary. `sizes` are the numbers of logits: the model's, the draft's.
/// As in llama.cpp, padding may differ by 128 tokens.
///
/// # Errors
/// Returns TPC0437 with the first difference.
pub fn same_vocabulary(
    name: &str,
    [model, draft]: [&GgufFile; 2],
    sizes: [usize; 2],
) -> Result<(), Error> {
    let message = match differs(model, draft) {
        None if sizes[0].abs_diff(sizes[1]) <= 128 => return Ok(()),
        None => {
            let [model, draft] = sizes;
            format!("the draft model predicts {draft} tokens, the model {model}")
        }
        Some(Difference::Kind(model, draft)) => {
            format!("the draft model has a tokenizer `{draft}`, the model `{model}`")
        }
        Some(Difference::Count(model, draft)) => {
            format!("the draft model has a vocabulary of {draft} tokens, the model one of {model}")
        }
        Some(Difference::Token(id, model, draft)) => {
            format!("token {id} is {draft:?} in the draft model, but {model:?} in the model")
        }
    };
    let d = Diagnostic::new(&OTHER_DRAFT, name.to_owned(), message);
    Err(Error::usage(d.help(
        "give a smaller model of the same family; --spec-type ngram-simple drafts without a second model",
    )))
}
