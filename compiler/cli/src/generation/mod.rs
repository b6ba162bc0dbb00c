//! Options that `tpc run` and `tpc serve` share: sampling and drafts.

mod draft_args;
mod drafts;
mod sampling;

pub(crate) use draft_args::{DraftArgs, Wanted};
pub(crate) use drafts::{Draft, DraftOptions, add};
pub(crate) use sampling::SamplingArgs;
