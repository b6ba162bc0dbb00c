/// Counts of a [`PrefixStore`](super::PrefixStore).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PrefixStatistics {
    /// Number of stored blocks.
    pub blocks: u64,
    /// Bytes of the stored blocks.
    pub bytes: u64,
    /// Number of sequences that got a prefix.
    pub hits: u64,
    /// Number of tokens that sequences got from the store.
    pub tokens_restored: u64,
    /// Number of evicted blocks.
    pub evictions: u64,
}
