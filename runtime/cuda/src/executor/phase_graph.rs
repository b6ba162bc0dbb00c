use tpc_ir::Launch;

use super::options::LaunchMode;
use crate::driver::{Driver, DriverError, Graph, GraphSpec};

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
