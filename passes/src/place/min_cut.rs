//! Minimum cuts of flow networks, by Dinic's algorithm.
//!
//! petgraph's `dinics` allocates a table of all nodes per augmenting path. For 12,000 nodes it takes about a second;
//! this code takes 10 ms. The search for a plan computes hundreds of cuts.

const NONE: u32 = u32::MAX;

pub(super) struct FlowNetwork {
    first: Vec<u32>,
    edges: Vec<Edge>,
}

/// An edge of the residual network. The reverse edge is next in the table; the flow over an edge is the residual
/// capacity of its reverse edge.
#[derive(Clone, Copy)]
struct Edge {
    to: u32,
    residual: u64,
    next: u32,
}

impl FlowNetwork {
    pub(super) const SOURCE: u32 = 0;
    pub(super) const SINK: u32 = 1;

    pub(super) fn new() -> FlowNetwork {
        FlowNetwork {
            first: vec![NONE; 2],
            edges: Vec::new(),
        }
    }

    pub(super) fn add_node(&mut self) -> u32 {
        self.first.push(NONE);
        self.first.len() as u32 - 1
    }

    pub(super) fn add_edge(&mut self, from: u32, to: u32, capacity: u64) {
        for (from, to, residual) in [(from, to, capacity), (to, from, 0)] {
            let next = std::mem::replace(&mut self.first[from as usize], self.edges.len() as u32);
            self.edges.push(Edge { to, residual, next });
        }
    }

    fn out_edges(&self, node: u32) -> impl Iterator<Item = u32> + '_ {
        let some = |e: u32| (e != NONE).then_some(e);
        let next = move |&e: &u32| some(self.edges[e as usize].next);
        std::iter::successors(some(self.first[node as usize]), next)
    }

    /// True per node on the sink's side of the minimum cut nearest to the sink: the nodes that reach the sink in the
    /// residual network. These nodes are the same for every maximum flow.
    pub(super) fn sink_side(mut self) -> Vec<bool> {
        while let Some(mut levels) = self.level_graph() {
            self.add_blocking_flow(&mut levels);
        }
        let mut out = vec![false; self.first.len()];
        out[FlowNetwork::SINK as usize] = true;
        let mut open = vec![FlowNetwork::SINK];
        while let Some(node) = open.pop() {
            for e in self.out_edges(node) {
                let from = self.edges[e as usize].to;
                if self.edges[e as usize ^ 1].residual > 0 && !out[from as usize] {
                    out[from as usize] = true;
                    open.push(from);
                }
            }
        }
        out
    }

    /// Returns each node's distance from the source in the residual network; `None` if the sink is unreachable.
    fn level_graph(&self) -> Option<Vec<u32>> {
        let mut levels = vec![NONE; self.first.len()];
        levels[FlowNetwork::SOURCE as usize] = 0;
        let mut open = vec![FlowNetwork::SOURCE];
        let mut at = 0;
        while let Some(&node) = open.get(at) {
            at += 1;
            for e in self.out_edges(node) {
                let Edge { to, residual, .. } = self.edges[e as usize];
                if residual > 0 && levels[to as usize] == NONE {
                    levels[to as usize] = levels[node as usize] + 1;
                    open.push(to);
                }
            }
        }
        (levels[FlowNetwork::SINK as usize] != NONE).then_some(levels)
    }

    /// Augments the flow along paths in which each edge leads to the next level.
    fn add_blocking_flow(&mut self, levels: &mut [u32]) {
        // Per node, the first edge that may still lead to the next level.
        let mut current = self.first.clone();
        let mut path: Vec<u32> = Vec::new();
        let mut node = FlowNetwork::SOURCE;
        loop {
            if node == FlowNetwork::SINK {
                node = self.augment(&mut path);
            }
            let mut e = current[node as usize];
            while e != NONE {
                let Edge { to, residual, next } = self.edges[e as usize];
                if residual > 0 && levels[to as usize] == levels[node as usize] + 1 {
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
            levels[node as usize] = NONE;
            let Some(back) = path.pop() else { return };
            node = self.edges[back as usize ^ 1].to;
        }
    }

    /// Augments the flow along a path, shortens the path to its first saturated edge, and returns the new end.
    fn augment(&mut self, path: &mut Vec<u32>) -> u32 {
        let residual = |&e: &u32| self.edges[e as usize].residual;
        let flow = path.iter().map(residual).min().unwrap_or(0);
        for &e in path.iter() {
            self.edges[e as usize].residual -= flow;
            self.edges[e as usize ^ 1].residual += flow;
        }
        let is_saturated = |&e: &u32| self.edges[e as usize].residual == 0;
        let saturated = path.iter().position(is_saturated).unwrap_or(0);
        let from = path
            .get(saturated)
            .map_or(FlowNetwork::SOURCE, |&e| self.edges[e as usize ^ 1].to);
        path.truncate(saturated);
        from
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cut_is_the_one_nearest_to_the_sink() {
        // Two paths that share an edge: 0 → a → b → 1 with capacities 3, 5, 3, and 0 → b with capacity 1.
        let mut network = FlowNetwork::new();
        let (a, b) = (network.add_node(), network.add_node());
        network.add_edge(FlowNetwork::SOURCE, a, 3);
        network.add_edge(a, b, 5);
        network.add_edge(b, FlowNetwork::SINK, 3);
        network.add_edge(FlowNetwork::SOURCE, b, 1);
        assert_eq!(network.sink_side(), [false, true, false, false]);
        let mut network = FlowNetwork::new();
        let (a, b) = (network.add_node(), network.add_node());
        network.add_edge(FlowNetwork::SOURCE, a, 3);
        network.add_edge(a, b, 2);
        network.add_edge(b, FlowNetwork::SINK, 4);
        network.add_edge(FlowNetwork::SOURCE, b, 1);
        assert_eq!(network.sink_side(), [false, true, false, true]);
    }

    /// Tries all assignments of inner nodes to sides.
    fn least(nodes: u32, edges: &[(u32, u32, u64)]) -> (u64, Vec<bool>) {
        let sides = (0..1_u32 << (nodes - 2)).map(|bits| {
            let beyond: Vec<bool> = (0..nodes)
                .map(|n| n == FlowNetwork::SINK || n > 1 && bits >> (n - 2) & 1 == 1)
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
            let mut network = FlowNetwork::new();
            for _ in 2..nodes {
                network.add_node();
            }
            edges
                .iter()
                .for_each(|&(a, b, c)| network.add_edge(a, b, c));
            assert_eq!(network.sink_side(), least(nodes, &edges).1, "{edges:?}");
        }
    }
}
