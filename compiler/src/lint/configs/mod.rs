//! What the options say that is likely not meant.

mod context;
mod drafts_aside;
mod override_unused;
mod rounding;

use super::{Check, Lint, Names, Plan};

/// The lints of configurations, in the order in which findings are told.
pub(super) const LINTS: &[&Lint] = &[
    &override_unused::LINT,
    &context::LINT,
    &rounding::LINT,
    &drafts_aside::LINT,
];
