//! Limits on the sizes in files.

/// Ten times the layers of any published model. It bounds the allocations of a hostile count.
pub(super) const MAX_LAYERS: u64 = 2048;
