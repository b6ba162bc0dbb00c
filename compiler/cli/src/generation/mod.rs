//! Options that `tpc run` and `tpc serve` share: sampling, drafts, and vectors of texts.

mod draft_args;
mod drafts;
mod pooling_args;
mod sampling;

pub(crate) use draft_args::{DraftArgs, Wanted};
pub(crate) use drafts::{Draft, DraftOptions, add};
pub(crate) use pooling_args::PoolingArgs;
pub(crate) use sampling::SamplingArgs;
