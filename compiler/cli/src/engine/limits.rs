//! What a model was not made for: tokens that it does not have, and texts longer than those that it was trained with.

use tpc_diag::{Diagnostic, codes};
use tpc_gguf::GgufFile;
use tpc_models::{RopeScaling, Stretch};

use crate::output::Failure;

/// The warning that sequences of so many tokens are longer than those that the model was trained with.
pub(crate) fn beyond_training(file: &GgufFile, each: usize) -> Option<Diagnostic> {
    let metadata = file.header().metadata();
    let architecture = metadata.get_str("general.architecture").ok().flatten()?;
    let trained = metadata.get_u64(&format!("{architecture}.context_length"));
    let trained = trained.ok().flatten().filter(|&n| n > 0)?;
    let stretch = RopeScaling::of_file(file.header()).of_context();
    if each as u64 <= stretch.map_or(trained, Stretch::reach) {
        return None;
    }
    let message =
        format!("{each} cells exceed the {trained} positions that the model was trained for");
    let d = Diagnostic::new(&tpc_lint::LONG_CONTEXT.code, "--ctx-size", message);
    Some(d.help(format!("-c {trained}")))
}

/// Fails where an id is none of the model's tokens; `whose` is the option or the file that has the ids.
///
/// # Errors
/// TPC0400.
pub(crate) fn in_vocabulary(
    mut ids: impl Iterator<Item = u32>,
    n_vocab: usize,
    whose: &str,
) -> Result<(), Failure> {
    let Some(id) = ids.find(|&id| id as usize >= n_vocab) else {
        return Ok(());
    };
    let message = format!("there is no token {id}: the model has {n_vocab}");
    let d = Diagnostic::new(&codes::COMMAND_LINE, whose, message);
    Err(Failure::usage(d.help(
        "ids begin at 0; `tpc tokenize MODEL -p TEXT` gives those of a text",
    )))
}
