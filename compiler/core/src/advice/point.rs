#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Chain {
    pub(super) first: OffloadOrder,
    pub(super) kv: bool,
    /// True if everything is on the host. A small model may be faster without transfers to a device.
    pub(super) all: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum OffloadOrder {
    /// Only layers that edits of the user's `-ot` move.
    Moves,
    /// Experts, then whole layers.
    Experts,
    Layers,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Offload {
    /// Number of first layers whose experts are on the host.
    pub(super) experts: u64,
    /// Number of first layers on the host; the output counts as the last layer.
    pub(super) layers: u64,
    pub(super) kv: bool,
    pub(super) moves: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Point {
    pub(super) way: usize,
    pub(super) chain: Chain,
    pub(super) level: u64,
    /// Index of the pair of cache types; 0 is the requested pair.
    pub(super) caches: usize,
    pub(super) ctx_size: u64,
    pub(super) parallel: u64,
    pub(super) ubatch: u64,
}
