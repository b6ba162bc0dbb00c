use tpc_diag::{Diagnostic, codes};

use crate::error::Error;

/// Checks that ids are tokens of the model. The diagnostic names `source`, an option or file.
///
/// # Errors
/// Returns TPC0400 for the first id outside the vocabulary.
pub fn check_tokens(
    mut ids: impl Iterator<Item = u32>,
    n_vocab: usize,
    source: &str,
) -> Result<(), Error> {
    let Some(id) = ids.find(|&id| id as usize >= n_vocab) else {
        return Ok(());
    };
    let message = format!("unknown token {id}: the vocabulary has {n_vocab} tokens");
    let d = Diagnostic::new(&codes::COMMAND_LINE, source, message);
    Err(Error::usage(d.help(
        "ids begin at 0; `tpc tokenize MODEL -p TEXT` prints the ids of a text",
    )))
}
