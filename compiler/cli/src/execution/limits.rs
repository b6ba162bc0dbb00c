use tpc_diag::Diagnostic;
use tpc_gguf::GgufFile;
use tpc_models::{RopeScaling, Stretch};

/// Returns a warning if sequences of `each` tokens exceed the training context.
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
