//! The roles of leaves, by what became of their buffers.
//!
//! - A graph's own results lie in a buffer with its inputs: the client fills these before each graph.
//! - What a graph writes to and did not make is a state, and so is all else in its buffer.
//! - What the client filled before the first graph, and never since, is a weight.

use std::collections::{BTreeMap, BTreeSet};

use tpc_ggml::capture::Role;

use crate::buffers::{Buffers, Span};
use crate::graph::Graph;

const FLAG_INPUT: i32 = 1;

/// What became of the buffers of a connection.
#[derive(Clone, Debug, Default)]
pub struct Roles {
    /// Buffers with results of graphs.
    results: BTreeSet<u64>,
    /// Buffers with what graphs have written to and not made.
    states: BTreeSet<u64>,
    /// Whether a graph was computed.
    any_graph: bool,
    /// Bytes that were written after the first graph, as ranges of each buffer.
    later: BTreeMap<u64, BTreeMap<u64, u64>>,
}

impl Roles {
    /// A buffer is there no more.
    pub fn forget(&mut self, buffer: u64) {
        self.results.remove(&buffer);
        self.states.remove(&buffer);
        self.later.remove(&buffer);
    }

    /// The client writes. Whether it writes to what was a weight until now.
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

    /// A graph is computed.
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

    /// The role of a leaf of a graph, by its position; `None` where nothing is known of its memory.
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

    /// Whether the client has written to some of these bytes after the first graph. The address of a buffer is its name.
    fn was_written_later(&self, buffer: u64, data: u64, len: u64) -> bool {
        let Some(start) = data.checked_sub(buffer) else {
            return false;
        };
        let ranges = self.later.get(&buffer).into_iter().flatten();
        let mut before = ranges.take_while(|(from, _)| **from < start + len);
        before.any(|(_, end)| *end > start)
    }
}
