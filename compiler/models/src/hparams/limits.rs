/// Maximum number of layers: ten times the layers of any published model. Bounds the allocations for a hostile count.
pub(super) const MAX_LAYERS: u64 = 2048;
