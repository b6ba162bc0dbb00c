//! The roles of leaves, inferred from the use of their buffers.
//!
//! - A buffer with results of a graph also holds inputs, which the client fills before each graph.
//! - A tensor that a graph overwrites but does not create makes its whole buffer a state.
//! - Data that the client wrote only before the first graph are weights.

use std::collections::{BTreeMap, BTreeSet};

use tpc_ggml::capture::Role;

use crate::buffers::{Buffers, Span};
use crate::graph::Graph;

const FLAG_INPUT: i32 = 1;

/// The use of a connection's buffers.
#[derive(Clone, Debug, Default)]
pub struct Roles {
    /// Buffers with graph results.
    results: BTreeSet<u64>,
    /// Buffers with memory that graphs overwrote but did not create.
    states: BTreeSet<u64>,
    any_graph: bool,
    /// The ranges of each buffer written after the first graph.
    later: BTreeMap<u64, BTreeMap<u64, u64>>,
}

impl Roles {
    /// Forgets a freed buffer.
    pub fn forget(&mut self, buffer: u64) {
        self.results.remove(&buffer);
        self.states.remove(&buffer);
        self.later.remove(&buffer);
    }

    /// Records a write. Returns true if the span was a weight before the write.
    pub fn written(&mut self, span: Span) -> bool {
        let held = self.results.contains(&span.buffer) || self.states.contains(&span.buffer);
        let is_new = self.any_graph
            && !held
            && !self.was_written_later(span.buffer, span.buffer + span.start, span.len);
        if self.any_graph && !held {
            let end = self.later.entry(span.buffer).or_default();
            let end = end.entry(span.start).or_default();
            *end = (*end).max(span.start + span.len);
        }
        is_new
    }

    /// Records a computation.
    pub fn computes(&mut self, graph: &Graph, buffers: &Buffers) {
        let nodes: BTreeSet<usize> = graph.nodes.iter().copied().collect();
        let inside = |at: usize| buffers.span(&graph.tensors[at]).ok().map(|s| s.buffer);
        let computing = || graph.nodes.iter().copied().filter(|&at| graph.computes(at));
        for at in computing().filter(|&at| graph.owner(at) == at) {
            self.results.extend(inside(at));
        }
        for at in computing() {
            let owner = graph.owner(at);
            let buffer =
                inside(owner).filter(|b| !nodes.contains(&owner) && !self.results.contains(b));
            self.states.extend(buffer);
        }
        self.any_graph = true;
    }

    /// Returns the role of a leaf, or `None` if its memory is not on this server.
    pub fn of(&self, graph: &Graph, leaf: usize) -> Option<Role> {
        let t = &graph.tensors[leaf];
        if t.flags & FLAG_INPUT != 0 {
            return Some(Role::Input);
        }
        if t.buffer == 0 {
            return None;
        }
        Some(if self.results.contains(&t.buffer) {
            Role::Input
        } else if self.states.contains(&t.buffer) {
            Role::State
        } else if self.was_written_later(t.buffer, t.data, t.bytes().unwrap_or(0)) {
            Role::Input
        } else {
            Role::Weight
        })
    }

    /// True if the client wrote one of these bytes after the first graph. The id of a buffer is its address.
    fn was_written_later(&self, buffer: u64, data: u64, len: u64) -> bool {
        let Some(start) = data.checked_sub(buffer) else {
            return false;
        };
        let ranges = self.later.get(&buffer).into_iter().flatten();
        let mut before = ranges.take_while(|(from, _)| **from < start + len);
        before.any(|(_, end)| *end > start)
    }
}
