//! Limits on the sizes in files.

/// More layers than any published model has, by an order of magnitude. It bounds the allocations that a hostile count
/// can cause.
pub(super) const MAX_LAYERS: u64 = 2048;
