//! What a thread knows to have happened before, beyond its own block.

use std::collections::{BTreeMap, BTreeSet};

/// What is known of a block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    /// All that it did before it passed so many barriers.
    pub(crate) epoch: u32,
    /// Of single threads, all that they did up to that clock.
    pub(crate) threads: BTreeMap<u32, u32>,
}

/// What is known of blocks and nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Known {
    /// Blocks, by instance.
    pub(crate) blocks: BTreeMap<u32, Seen>,
    /// Nodes that have ended.
    pub(crate) nodes: BTreeSet<usize>,
}

impl Known {
    /// Adds what another knows.
    pub(crate) fn join(&mut self, other: &Known) {
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

    /// Whether nothing is known.
    pub(crate) fn is_empty(&self) -> bool {
        self.blocks.is_empty() && self.nodes.is_empty()
    }
}
