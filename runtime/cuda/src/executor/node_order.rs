//! The order of a graph's nodes, and edges that a collective leaves to later nodes.
//!
//! In a program, the participants of a collective end together. In a graph, a device's next node waits only for the
//! device's own part. The parts of other devices may still read its memory, so a node that writes this memory waits for
//! them, unless a path of edges orders them already.

use std::rc::Rc;

use super::accesses::Accesses;

/// A node of a collective with its accesses.
#[derive(Debug)]
struct Part {
    node: usize,
    accesses: Rc<Accesses>,
}

/// The order of the nodes of a graph. Each node belongs to a queue, and follows all earlier nodes of its queue.
#[derive(Debug, Default)]
pub(super) struct NodeOrder {
    /// The queue of each node, and its number in the queue, from 1 on.
    places: Vec<(usize, u32)>,
    /// For each node and queue, the number of the last node that ends before it, itself included.
    clocks: Vec<Vec<u32>>,
    /// The number of nodes of each queue.
    counts: Vec<u32>,
    /// For each queue, parts of collectives in other queues that need not have ended.
    pending: Vec<Vec<Part>>,
}

impl NodeOrder {
    pub(super) fn new(queues: usize) -> NodeOrder {
        NodeOrder {
            counts: vec![0; queues],
            pending: (0..queues).map(|_| Vec::new()).collect(),
            ..NodeOrder::default()
        }
    }

    fn clock(&self, after: &[usize]) -> Vec<u32> {
        let mut out = vec![0; self.counts.len()];
        for node in after {
            later(&mut out, &self.clocks[*node]);
        }
        out
    }

    /// Adds a queue's next node after the nodes in `after`. Adds nodes to `after` whose accesses conflict.
    pub(super) fn push(&mut self, queue: usize, accesses: &Accesses, after: &mut Vec<usize>) {
        let mut clock = self.clock(after);
        let pending = std::mem::take(&mut self.pending[queue]);
        // Later parts come first: they may follow earlier ones.
        let mut kept = Vec::new();
        for part in pending.into_iter().rev() {
            let (of, number) = self.places[part.node];
            if clock[of] >= number {
                continue;
            }
            if part.accesses.conflicts(accesses) {
                later(&mut clock, &self.clocks[part.node]);
                after.push(part.node);
            } else {
                kept.push(part);
            }
        }
        kept.reverse();
        self.pending[queue] = kept;
        self.counts[queue] += 1;
        clock[queue] = self.counts[queue];
        self.places.push((queue, self.counts[queue]));
        self.clocks.push(clock);
    }

    /// Lets nodes of other queues start before the last node has ended, if their accesses do not conflict.
    pub(super) fn leave_open(&mut self, accesses: Accesses) {
        let (Some((queue, _)), accesses) = (self.places.last().copied(), Rc::new(accesses)) else {
            return;
        };
        let node = self.places.len() - 1;
        for (q, pending) in self.pending.iter_mut().enumerate() {
            if q != queue {
                let accesses = Rc::clone(&accesses);
                pending.push(Part { node, accesses });
            }
        }
    }
}

fn later(clock: &mut [u32], other: &[u32]) {
    for (a, b) in clock.iter_mut().zip(other) {
        *a = (*a).max(*b);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accesses(reads: &[usize], writes: &[usize]) -> Accesses {
        Accesses::of_buffers(reads, writes)
    }

    /// A collective of two queues, whose parts read the buffers 0 and 1, of the queues of the same number.
    fn collective() -> NodeOrder {
        let mut order = NodeOrder::new(3);
        for queue in [0, 1] {
            order.push(queue, &accesses(&[], &[queue]), &mut Vec::new());
        }
        for queue in [0, 1] {
            let part = accesses(&[0, 1], &[2 + queue]);
            order.push(queue, &part, &mut vec![0, 1]);
            order.leave_open(part);
        }
        order
    }

    fn after(order: &mut NodeOrder, queue: usize, of: &Accesses, last: usize) -> Vec<usize> {
        let mut after = vec![last];
        order.push(queue, of, &mut after);
        after
    }

    #[test]
    fn a_node_waits_only_for_parts_whose_memory_it_writes() {
        // Node 4 reads the result of its own part, node 5 writes memory that part 2 still reads.
        let mut order = collective();
        assert_eq!(after(&mut order, 0, &accesses(&[2], &[4]), 2), [2]);
        assert_eq!(after(&mut order, 1, &accesses(&[3], &[1]), 3), [3, 2]);
        // The host reads a result.
        assert_eq!(after(&mut order, 2, &accesses(&[3], &[]), 4), [4, 3]);
    }

    #[test]
    fn a_node_after_a_join_waits_no_longer() {
        let mut order = collective();
        let next = accesses(&[4, 5], &[6]);
        for queue in [0, 1] {
            order.push(
                queue,
                &accesses(&[2 + queue], &[4 + queue]),
                &mut vec![2 + queue],
            );
        }
        order.push(0, &next, &mut vec![4, 5]);
        order.leave_open(next);
        // Part 3 of the first collective ended before node 5, which ended before node 6.
        assert_eq!(after(&mut order, 0, &accesses(&[6], &[0]), 6), [6]);
        assert_eq!(after(&mut order, 1, &accesses(&[], &[1]), 5), [5, 2]);
    }
}
