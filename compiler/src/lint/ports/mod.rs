//! What the graph of a port says that its author should know.

use super::Lint;

/// The lints of these, in the order in which findings are told.
pub(super) const LINTS: &[&Lint] = &[];
