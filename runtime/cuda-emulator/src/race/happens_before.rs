//! Accesses of other blocks that happened before the current point of a thread.

use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct BlockProgress {
    /// All accesses before this number of barriers happened before.
    pub(crate) epoch: u32,
    /// For each thread, the clock up to which accesses happened before.
    pub(crate) threads: BTreeMap<u32, u32>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct HappensBefore {
    pub(crate) blocks: BTreeMap<u32, BlockProgress>,
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
