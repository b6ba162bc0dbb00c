//! Index sets: the elements of a tensor on a device.
//!
//! A [`Pattern`] selects elements by their order in memory, so reshapes do not change it. Sizes may be symbolic;
//! selected indices are constants. An [`IndexSet`] is a product of patterns, each for its own factor of the tensor's
//! size.
//!
//! - `pattern.rs`: one pattern in lowest terms;
//! - `repeated.rs`: the indices that a pattern selects, over all periods;
//! - `composition.rs`: selections from selections, and their inverse;
//! - `axes.rs`: index sets by axis;
//! - `intervals.rs`: arithmetic on intervals.

mod axes;
mod composition;
mod intervals;
mod pattern;
mod repeated;
#[cfg(test)]
mod tests;

pub(super) use axes::{from_axes, locate, per_axis, selected_dims};
pub(super) use composition::{compose, quotient};
pub(super) use intervals::clip;
pub(super) use pattern::{Pattern, common_period, common_unit, units};

/// The result does not exist or is not an index set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NotExpressible;

/// A product of patterns, minor first. Patterns separated only by constants are merged, so equal selections compare
/// equal.
pub(super) type IndexSet = Vec<Pattern>;
