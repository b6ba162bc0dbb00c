//! Checks a user's token ids against the model's vocabulary.

use tpc_diag::{Diagnostic, codes};

use crate::error::Error;

/// Checks that ids are tokens of the model. The diagnostic names `source`, the option or file that gave them.
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
    let message = format!("there is no token {id}: the model has {n_vocab}");
    let d = Diagnostic::new(&codes::COMMAND_LINE, source, message);
    Err(Error::usage(d.help(
        "ids begin at 0; `tpc tokenize MODEL -p TEXT` gives those of a text",
    )))
}
