//! Which tensors a model of given hyper-parameters consists of.

use super::blocks::hparams::HParams;
use super::error::ArchError;
use super::source::{ExpectedTensor, Recorder, WeightForms};
use super::{LowerOptions, find, lowering};
use tpc_gguf::Metadata;

/// The tensors of a model with these metadata, in the order in which it uses them.
///
/// Of optional tensors those are listed of which `keep` says so: keep none for the fewest tensors that make a model
/// (`output` is then tied to the token embedding), all for the most. Where files hold weights in one of several forms
/// (queries, keys and values fused or not), the architecture's usual form is listed.
///
/// The metadata need what [`lower`](super::lower) needs, and a vocabulary size: `vocab_size` or a token list.
///
/// # Errors
///
/// As [`lower`](super::lower), but for tensors.
pub fn expected_tensors(
    metadata: &Metadata,
    options: &LowerOptions,
    keep: impl Fn(&ExpectedTensor) -> bool,
) -> Result<Vec<ExpectedTensor>, ArchError> {
    expected_tensors_in(metadata, options, WeightForms::Usual, keep)
}

/// [`expected_tensors`], with weights in the given form of the several in which files may hold them.
///
/// Where there is one form only, as for most weights, it is listed whatever `forms` says.
///
/// # Errors
///
/// As [`expected_tensors`].
pub fn expected_tensors_in(
    metadata: &Metadata,
    options: &LowerOptions,
    forms: WeightForms,
    keep: impl Fn(&ExpectedTensor) -> bool,
) -> Result<Vec<ExpectedTensor>, ArchError> {
    let arch = find(metadata.require_str("general.architecture")?)?;
    let hparams = HParams::read(arch, metadata, None, options.drafting)?;
    let mut recorder = Recorder::new(forms, &keep);
    lowering::build(arch, &hparams, options, &mut recorder)?;
    Ok(recorder.into_tensors())
}
