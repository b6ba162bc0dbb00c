use std::collections::BTreeMap;

use tpc_ir::Launch;

use super::options::LaunchMode;
use crate::driver::{Driver, DriverError, Edge, Graph, GraphSpec};

/// The position of a kernel in the launches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KernelPosition {
    pub(super) launch: Launch,
    pub(super) device: usize,
    /// The index of the task in the launch.
    pub(super) task: usize,
    /// The index of the kernel in the task.
    pub(super) run: usize,
}

/// A graph with one node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) graph: Graph,
    /// The kernel; `None` for host work.
    pub(super) kernel: Option<KernelPosition>,
}

/// The work of a batch shape and phase.
#[derive(Debug)]
pub(super) enum PhaseGraph {
    Whole(Graph),
    /// A graph whose nodes are timed, with the kernel of each node.
    Timed(Graph, Vec<Option<KernelPosition>>),
    /// Graphs to run one after another.
    Steps(Vec<Step>),
}

/// The graphs of a batch shape and phase.
#[derive(Debug)]
pub(super) struct PhaseGraphs {
    pub(super) main: PhaseGraph,
    /// The graphs for the output. One of them runs after `main`.
    pub(super) output: Option<OutputGraphs>,
}

/// Graphs that bring an output to the host.
#[derive(Clone, Copy, Debug)]
pub(super) struct OutputGraphs {
    /// Copies the output.
    pub(super) all: Graph,
    /// Finds the largest elements of the output.
    pub(super) best: Graph,
}

/// Moves nodes to a graph that runs after the others. Returns the graph as it was if
/// a node that stays comes after a node that moves.
pub(super) fn split(
    spec: GraphSpec,
    moves: impl Fn(usize) -> bool,
) -> Result<[GraphSpec; 2], GraphSpec> {
    if spec.edges.iter().any(|e| moves(e.from) && !moves(e.to)) {
        return Err(spec);
    }
    let mut out = [GraphSpec::default(), GraphSpec::default()];
    let mut numbers = BTreeMap::new();
    for (i, node) in spec.nodes.into_iter().enumerate() {
        let to = &mut out[usize::from(moves(i))].nodes;
        numbers.insert(i, to.len());
        to.push(node);
    }
    for edge in spec.edges.iter().filter(|e| moves(e.from) == moves(e.to)) {
        out[usize::from(moves(edge.from))].edges.push(Edge {
            from: numbers[&edge.from],
            to: numbers[&edge.to],
            kind: edge.kind,
        });
    }
    Ok(out)
}

impl PhaseGraph {
    /// Instantiates the graph, or a graph per node. `positions` has the kernel of each node.
    pub(super) fn new(
        spec: GraphSpec,
        positions: &[Option<KernelPosition>],
        mode: LaunchMode,
        driver: &mut impl Driver,
    ) -> Result<PhaseGraph, DriverError> {
        match mode {
            LaunchMode::Whole => return driver.instantiate(spec).map(PhaseGraph::Whole),
            LaunchMode::Timed => {
                let of_nodes = positions.iter().copied().take(spec.nodes.len());
                let kernels = of_nodes.collect();
                let graph = driver.instantiate_timed(spec)?;
                return Ok(PhaseGraph::Timed(graph, kernels));
            }
            LaunchMode::Stepped => {}
        }
        let order = spec.order()?;
        let mut nodes: Vec<_> = spec.nodes.into_iter().map(Some).collect();
        let mut steps = Vec::with_capacity(nodes.len());
        for i in order {
            let mut alone = GraphSpec::default();
            alone.nodes.extend(nodes[i].take());
            steps.push(Step {
                graph: driver.instantiate(alone)?,
                kernel: positions.get(i).copied().flatten(),
            });
        }
        Ok(PhaseGraph::Steps(steps))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::Work;

    fn chain() -> GraphSpec {
        let mut spec = GraphSpec::default();
        let a = spec.push("a", Work::Join, &[]);
        let b = spec.push("b", Work::Join, &[a]);
        let c = spec.push("c", Work::Join, &[b]);
        spec.push("d", Work::Join, &[c, a]);
        spec
    }

    fn parts(spec: &GraphSpec) -> (Vec<&str>, Vec<(usize, usize)>) {
        let names = spec.nodes.iter().map(|n| n.label.as_str()).collect();
        (names, spec.edges.iter().map(|e| (e.from, e.to)).collect())
    }

    #[test]
    fn only_ends_of_a_graph_move() {
        let [first, second] = split(chain(), |i| i >= 2).expect("the end moves");
        assert_eq!(parts(&first), (vec!["a", "b"], vec![(0, 1)]));
        assert_eq!(parts(&second), (vec!["c", "d"], vec![(0, 1)]));
        let whole = split(chain(), |i| i == 1).expect_err("`c` comes after `b`");
        assert_eq!(whole.nodes.len(), 4);
    }
}
