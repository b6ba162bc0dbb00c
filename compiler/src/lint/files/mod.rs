//! What a model file says that its user should know.

use super::Lint;

/// The lints of these, in the order in which findings are told.
pub(super) const LINTS: &[&Lint] = &[];
