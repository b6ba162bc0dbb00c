//! Maximum flows, by Dinic's algorithm.

/// No edge.
const NONE: u32 = u32::MAX;

/// A network of nodes and edges with capacities, from node 0 to node 1.
pub(super) struct Net {
    /// Per node, its first edge.
    first: Vec<u32>,
    edges: Vec<Edge>,
}

/// An edge, or the way back over one: they are neighbours, and what flows over one is room on the other.
#[derive(Clone, Copy)]
struct Edge {
    to: u32,
    /// What can still flow.
    room: u64,
    /// The next edge of the node that it leaves.
    next: u32,
}

impl Net {
    pub(super) const SOURCE: u32 = 0;
    pub(super) const SINK: u32 = 1;

    /// A network of the source and the sink.
    pub(super) fn new() -> Net {
        Net {
            first: vec![NONE; 2],
            edges: Vec::new(),
        }
    }

    pub(super) fn add_node(&mut self) -> u32 {
        self.first.push(NONE);
        self.first.len() as u32 - 1
    }

    pub(super) fn add_edge(&mut self, from: u32, to: u32, capacity: u64) {
        for (from, to, room) in [(from, to, capacity), (to, from, 0)] {
            let next = std::mem::replace(&mut self.first[from as usize], self.edges.len() as u32);
            self.edges.push(Edge { to, room, next });
        }
    }

    /// The edges that leave a node, the ways back over others included.
    fn leaving(&self, node: u32) -> impl Iterator<Item = u32> + '_ {
        let some = |e: u32| (e != NONE).then_some(e);
        let next = move |&e: &u32| some(self.edges[e as usize].next);
        std::iter::successors(some(self.first[node as usize]), next)
    }

    /// The nodes from which the sink can still be reached under a maximum flow: the same for all such flows.
    pub(super) fn beyond_cut(mut self) -> Vec<bool> {
        while let Some(mut levels) = self.levels() {
            self.block(&mut levels);
        }
        let mut out = vec![false; self.first.len()];
        out[Net::SINK as usize] = true;
        let mut open = vec![Net::SINK];
        while let Some(node) = open.pop() {
            for e in self.leaving(node) {
                let from = self.edges[e as usize].to;
                if self.edges[e as usize ^ 1].room > 0 && !out[from as usize] {
                    out[from as usize] = true;
                    open.push(from);
                }
            }
        }
        out
    }

    /// Per node its distance from the source over edges with room; `None` where the sink cannot be reached.
    fn levels(&self) -> Option<Vec<u32>> {
        let mut levels = vec![NONE; self.first.len()];
        levels[Net::SOURCE as usize] = 0;
        let mut open = vec![Net::SOURCE];
        let mut at = 0;
        while let Some(&node) = open.get(at) {
            at += 1;
            for e in self.leaving(node) {
                let Edge { to, room, .. } = self.edges[e as usize];
                if room > 0 && levels[to as usize] == NONE {
                    levels[to as usize] = levels[node as usize] + 1;
                    open.push(to);
                }
            }
        }
        (levels[Net::SINK as usize] != NONE).then_some(levels)
    }

    /// Lets as much flow along paths that descend by one level with each edge as these admit.
    fn block(&mut self, levels: &mut [u32]) {
        // Per node, the first edge that may still lead on.
        let mut current = self.first.clone();
        let mut path: Vec<u32> = Vec::new();
        let mut node = Net::SOURCE;
        loop {
            if node == Net::SINK {
                node = self.fill(&mut path);
            }
            let mut e = current[node as usize];
            while e != NONE {
                let Edge { to, room, next } = self.edges[e as usize];
                if room > 0 && levels[to as usize] == levels[node as usize] + 1 {
                    break;
                }
                e = next;
            }
            current[node as usize] = e;
            if e != NONE {
                path.push(e);
                node = self.edges[e as usize].to;
                continue;
            }
            // Nothing leads on from here.
            levels[node as usize] = NONE;
            let Some(back) = path.pop() else { return };
            node = self.edges[back as usize ^ 1].to;
        }
    }

    /// Lets as much flow along a path as it admits. Cuts it before the first edge that is full now, and returns where it ends
    /// then.
    fn fill(&mut self, path: &mut Vec<u32>) -> u32 {
        let room = |&e: &u32| self.edges[e as usize].room;
        let flow = path.iter().map(room).min().unwrap_or(0);
        for &e in path.iter() {
            self.edges[e as usize].room -= flow;
            self.edges[e as usize ^ 1].room += flow;
        }
        let full = |&e: &u32| self.edges[e as usize].room == 0;
        let full = path.iter().position(full).unwrap_or(0);
        let from = path
            .get(full)
            .map_or(Net::SOURCE, |&e| self.edges[e as usize ^ 1].to);
        path.truncate(full);
        from
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cut_is_the_one_nearest_to_the_sink() {
        // Two paths that share an edge: 0 → a → b → 1 with room 3, 5, 3, and 0 → b with room 1.
        let mut net = Net::new();
        let (a, b) = (net.add_node(), net.add_node());
        net.add_edge(Net::SOURCE, a, 3);
        net.add_edge(a, b, 5);
        net.add_edge(b, Net::SINK, 3);
        net.add_edge(Net::SOURCE, b, 1);
        assert_eq!(net.beyond_cut(), [false, true, false, false]);
        let mut net = Net::new();
        let (a, b) = (net.add_node(), net.add_node());
        net.add_edge(Net::SOURCE, a, 3);
        net.add_edge(a, b, 2);
        net.add_edge(b, Net::SINK, 4);
        net.add_edge(Net::SOURCE, b, 1);
        assert_eq!(net.beyond_cut(), [false, true, false, true]);
    }

    /// The least capacity of the edges from one side to the other, over all sides that the other nodes can have.
    fn least(nodes: u32, edges: &[(u32, u32, u64)]) -> (u64, Vec<bool>) {
        let sides = (0..1_u32 << (nodes - 2)).map(|bits| {
            let beyond: Vec<bool> = (0..nodes)
                .map(|n| n == Net::SINK || n > 1 && bits >> (n - 2) & 1 == 1)
                .collect();
            let cut = |&&(a, b, _): &&(u32, u32, u64)| !beyond[a as usize] && beyond[b as usize];
            let cost: u64 = edges.iter().filter(cut).map(|(_, _, c)| c).sum();
            let size = beyond.iter().filter(|b| **b).count();
            ((cost, size), beyond)
        });
        let ((cost, _), beyond) = sides.min_by_key(|(key, _)| *key).expect("a side");
        (cost, beyond)
    }

    #[test]
    fn cuts_are_the_least_of_all() {
        let mut state = 1_u64;
        let mut random = |n: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % n
        };
        for _ in 0..500 {
            let nodes = 2 + random(6) as u32;
            let edges: Vec<(u32, u32, u64)> = (0..random(20))
                .map(|_| {
                    let node = |r: u64| r as u32;
                    let (a, b) = (node(random(nodes.into())), node(random(nodes.into())));
                    (a, b, random(4))
                })
                .filter(|(a, b, _)| a != b)
                .collect();
            let mut net = Net::new();
            for _ in 2..nodes {
                net.add_node();
            }
            edges.iter().for_each(|&(a, b, c)| net.add_edge(a, b, c));
            assert_eq!(net.beyond_cut(), least(nodes, &edges).1, "{edges:?}");
        }
    }
}
