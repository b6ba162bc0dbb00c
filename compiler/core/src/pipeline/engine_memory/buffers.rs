//! The sizes of a graph's buffers. A tensor lives from its op to its last reader. Ops overwrite operands without
//! further readers.

use super::allocator::Allocator;
use super::tensor::{Id, Kind, Tensors};

pub(super) struct ScheduledGraph {
    pub(super) graph: Tensors,
    /// Tensors allocated before the first op.
    pub(super) first: Vec<Id>,
}

#[derive(Clone, Copy, Debug, Default)]
struct TensorLife {
    readers: u32,
    views: u32,
    is_held: bool,
    start: u64,
    buffer: usize,
}

struct Replay<'a> {
    graph: &'a Tensors,
    live: Vec<TensorLife>,
    buffers: Vec<Allocator>,
}

/// Computes the buffer bytes per place. The host is last.
pub(super) fn sizes(scheduled: &ScheduledGraph, alignments: &[u64]) -> Vec<u64> {
    let graph = &scheduled.graph;
    let mut all = Replay {
        graph,
        live: vec![TensorLife::default(); graph.all.len()],
        buffers: alignments.iter().map(|&a| Allocator::new(a)).collect(),
    };
    let place = |id: Id| graph.all[id].place.unwrap_or(0);
    for &id in &scheduled.first {
        all.allocate(id, place(id));
    }
    for &id in &graph.order {
        let t = &graph.all[id];
        if let (Some(root), true) = (t.root, t.kind != Kind::Held) {
            all.live[root].views += 1;
        }
        for &source in &t.sources {
            all.live[source].readers += 1;
            if graph.all[source].kind == Kind::Input {
                all.allocate(source, place(source));
            }
        }
    }
    for &id in &graph.order {
        for &source in &graph.all[id].sources {
            all.allocate(source, place(id));
        }
        all.allocate(id, place(id));
        for &source in &graph.all[id].sources {
            all.read(source);
        }
    }
    all.buffers.iter().map(Allocator::most).collect()
}

impl Replay<'_> {
    fn allocate(&mut self, id: Id, buffer: usize) {
        let t = &self.graph.all[id];
        if t.is_stored() || t.root.is_some() || self.live[id].is_held {
            return;
        }
        let over = (t.kind == Kind::InPlace).then(|| {
            let mut sources = t.sources.iter().copied();
            sources.find(|&s| self.is_last_read(s) && self.fits(s, id))
        });
        let live = match over.flatten() {
            Some(source) => {
                let from = self.live[source];
                self.live[source].is_held = false;
                let (old, new) = (self.graph.all[source].bytes, t.bytes);
                let buffer = &mut self.buffers[from.buffer];
                let (old, new) = (buffer.round_up(old), buffer.round_up(new));
                if old > new {
                    buffer.release(from.start + new, old - new);
                }
                from
            }
            None => TensorLife {
                start: self.buffers[buffer].allocate(t.bytes),
                buffer,
                ..TensorLife::default()
            },
        };
        let now = &mut self.live[id];
        (now.start, now.buffer, now.is_held) = (live.start, live.buffer, true);
    }

    /// True if a tensor owns its memory and has exactly one reader left.
    fn is_last_read(&self, id: Id) -> bool {
        let (t, live) = (&self.graph.all[id], self.live[id]);
        live.is_held && t.root.is_none() && !t.is_output && live.readers == 1 && live.views == 0
    }

    fn fits(&self, source: Id, id: Id) -> bool {
        let (source, t) = (&self.graph.all[source], &self.graph.all[id]);
        source.layout == t.layout && source.contiguous && t.contiguous
    }

    fn read(&mut self, id: Id) {
        self.live[id].readers -= 1;
        if self.live[id].readers > 0 || self.live[id].views > 0 {
            return;
        }
        match self.graph.all[id].root {
            Some(root) => {
                let live = &mut self.live[root];
                live.views = live.views.saturating_sub(1);
                if live.views == 0 && live.readers == 0 {
                    self.release(root);
                }
            }
            None => self.release(id),
        }
    }

    fn release(&mut self, id: Id) {
        let live = self.live[id];
        if live.is_held && !self.graph.all[id].is_output {
            self.live[id].is_held = false;
            self.buffers[live.buffer].release(live.start, self.graph.all[id].bytes);
        }
    }
}
