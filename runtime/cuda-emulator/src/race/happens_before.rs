//! The accesses of other blocks that happened before a thread's current point.

use std::collections::{BTreeMap, BTreeSet};

/// The accesses of one block that happened before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct BlockProgress {
    /// A number of barriers: all accesses before the last of these barriers happened before.
    pub(crate) epoch: u32,
    /// Per thread, all accesses up to this clock happened before.
    pub(crate) threads: BTreeMap<u32, u32>,
}

/// The accesses of blocks and nodes that happened before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct HappensBefore {
    /// Per block instance.
    pub(crate) blocks: BTreeMap<u32, BlockProgress>,
    /// Completed nodes.
    pub(crate) nodes: BTreeSet<usize>,
}

impl HappensBefore {
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

    pub(crate) fn is_empty(&self) -> bool {
        self.blocks.is_empty() && self.nodes.is_empty()
    }
}
