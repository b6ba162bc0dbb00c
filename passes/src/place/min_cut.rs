//! Minimum cuts of flow networks.

use petgraph::algo::maximum_flow::dinics;
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::{Dfs, EdgeRef};

/// A flow network: nodes, and edges with capacities, from a source to a sink.
pub(super) struct FlowNetwork {
    edges: DiGraph<(), u64>,
    pub(super) source: NodeIndex,
    pub(super) sink: NodeIndex,
}

impl FlowNetwork {
    /// A network of the source and the sink.
    pub(super) fn new() -> FlowNetwork {
        let mut edges = DiGraph::new();
        let (source, sink) = (edges.add_node(()), edges.add_node(()));
        FlowNetwork {
            edges,
            source,
            sink,
        }
    }

    pub(super) fn add_node(&mut self) -> NodeIndex {
        self.edges.add_node(())
    }

    pub(super) fn add_edge(&mut self, from: NodeIndex, to: NodeIndex, capacity: u64) {
        self.edges.add_edge(from, to, capacity);
    }

    /// Per node, whether it is on the sink's side of the minimum cut that is nearest to the sink: the nodes from which the
    /// sink can be reached in the residual network, which are the same for every maximum flow.
    pub(super) fn sink_side(&self) -> Vec<bool> {
        let (_, flows) = dinics(&self.edges, self.source, self.sink);
        let mut reversed_residual = DiGraph::<(), ()>::with_capacity(self.edges.node_count(), 0);
        for _ in self.edges.node_indices() {
            reversed_residual.add_node(());
        }
        for edge in self.edges.edge_references() {
            let flow = flows[edge.id().index()];
            if flow < *edge.weight() {
                reversed_residual.add_edge(edge.target(), edge.source(), ());
            }
            if flow > 0 {
                reversed_residual.add_edge(edge.source(), edge.target(), ());
            }
        }
        let mut out = vec![false; self.edges.node_count()];
        let mut search = Dfs::new(&reversed_residual, self.sink);
        while let Some(node) = search.next(&reversed_residual) {
            out[node.index()] = true;
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cut_is_the_one_nearest_to_the_sink() {
        // Two paths that share an edge: 0 → a → b → 1 with room 3, 5, 3, and 0 → b with room 1.
        let mut network = FlowNetwork::new();
        let (source, sink) = (network.source, network.sink);
        let (a, b) = (network.add_node(), network.add_node());
        network.add_edge(source, a, 3);
        network.add_edge(a, b, 5);
        network.add_edge(b, sink, 3);
        network.add_edge(source, b, 1);
        assert_eq!(network.sink_side(), [false, true, false, false]);
        let mut network = FlowNetwork::new();
        let (source, sink) = (network.source, network.sink);
        let (a, b) = (network.add_node(), network.add_node());
        network.add_edge(source, a, 3);
        network.add_edge(a, b, 2);
        network.add_edge(b, sink, 4);
        network.add_edge(source, b, 1);
        assert_eq!(network.sink_side(), [false, true, false, true]);
    }

    /// The least capacity of the edges from one side to the other, over all sides that the other nodes can have.
    fn least(nodes: usize, edges: &[(usize, usize, u64)]) -> (u64, Vec<bool>) {
        let sides = (0..1_u32 << (nodes - 2)).map(|bits| {
            let beyond: Vec<bool> = (0..nodes)
                .map(|n| n == 1 || n > 1 && bits >> (n - 2) & 1 == 1)
                .collect();
            let cut = |&&(a, b, _): &&(usize, usize, u64)| !beyond[a] && beyond[b];
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
            let nodes = 2 + random(6) as usize;
            let edges: Vec<(usize, usize, u64)> = (0..random(20))
                .map(|_| {
                    let mut node = || random(nodes as u64) as usize;
                    (node(), node(), random(4))
                })
                .filter(|(a, b, _)| a != b)
                .collect();
            let mut network = FlowNetwork::new();
            for _ in 2..nodes {
                network.add_node();
            }
            for &(a, b, capacity) in &edges {
                network.add_edge(NodeIndex::new(a), NodeIndex::new(b), capacity);
            }
            assert_eq!(network.sink_side(), least(nodes, &edges).1, "{edges:?}");
        }
    }
}
