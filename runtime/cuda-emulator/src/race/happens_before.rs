//! The accesses that happened before a thread, beyond its own block.

use std::collections::{BTreeMap, BTreeSet};

/// The accesses of a block that happened before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct BlockProgress {
    /// All that it did before it passed so many barriers.
    pub(crate) epoch: u32,
    /// Of single threads, all that they did up to that clock.
    pub(crate) threads: BTreeMap<u32, u32>,
}

/// The accesses of blocks and nodes that happened before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct HappensBefore {
    /// Blocks, by instance.
    pub(crate) blocks: BTreeMap<u32, BlockProgress>,
    /// Nodes that have ended.
    pub(crate) nodes: BTreeSet<usize>,
}

impl HappensBefore {
    /// Adds what another knows.
    pub(crate) fn join(&mut self, other: &HappensBefore) {
        for (&instance, seen) in &other.blocks {
            let own = self.blocks.entry(instance).or_default();
            own.epoch = own.epoch.max(seen.epoch);
            for (&thread, &clock) in &seen.threads {
                let known = own.threads.entry(thread).or_default();
                *known = clock.max(*known);
            }
        }
        self.nodes.extend(&other.nodes);
    }

    /// Returns true if nothing is known.
    pub(crate) fn is_empty(&self) -> bool {
        self.blocks.is_empty() && self.nodes.is_empty()
    }
}
