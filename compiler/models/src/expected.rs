use super::error::ArchError;
use super::families::find;
use super::hparams::HParams;
use super::lowering::assemble;
use super::options::LowerOptions;
use super::source::{ExpectedTensor, Recorder, WeightForms};
use tpc_gguf::Metadata;

/// Lists the tensors of a model with these metadata, in the order of use.
///
/// `keep` selects optional tensors. With none of them the list describes the smallest model, with all of them the
/// largest; without `output`, the projection to logits is the token embedding. Weights that files hold in several forms
/// (queries, keys and values fused or separate) have the architecture's usual form.
///
/// The metadata must have the keys that [`lower`](super::lower) reads, and the vocabulary's size: `vocab_size` or a
/// token list.
///
/// # Errors
/// Returns the errors of [`lower`](super::lower), except errors about tensors.
pub fn expected_tensors(
    metadata: &Metadata,
    options: &LowerOptions,
    keep: impl Fn(&ExpectedTensor) -> bool,
) -> Result<Vec<ExpectedTensor>, ArchError> {
    expected_tensors_in(metadata, options, WeightForms::Usual, keep)
}

/// Lists tensors as [`expected_tensors`], with weights in the given form. Most weights have only one form.
///
/// # Errors
/// Returns the errors of [`expected_tensors`].
pub fn expected_tensors_in(
    metadata: &Metadata,
    options: &LowerOptions,
    forms: WeightForms,
    keep: impl Fn(&ExpectedTensor) -> bool,
) -> Result<Vec<ExpectedTensor>, ArchError> {
    let arch = find(metadata.require_str("general.architecture")?)?;
    let hparams = HParams::read(arch, metadata, None, options.drafting)?;
    let mut recorder = Recorder::new(forms, &keep);
    assemble(arch, &hparams, options, &mut recorder)?;
    Ok(recorder.into_tensors())
}
