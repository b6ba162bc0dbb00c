//! The state of a running graph, shared by the scheduler and the calls from kernels.

use std::time::Instant;

use tpc_cuda::EdgeKind;

use super::abi::ThreadHead;
use super::access_checker::{Access, AccessChecker, Violation};
use super::block::Block;
use super::fault::UnresolvedFault;
use super::fiber::Stacks;
use super::graph::GraphNode;
use super::random::Random;

#[derive(Clone, Default)]
pub(super) struct Progress {
    pub(super) missing: usize,
    pub(super) begun: usize,
    pub(super) triggered: usize,
    pub(super) ended: usize,
    pub(super) blocks: usize,
    pub(super) over: bool,
    /// True if a thread has waited for the programmatic predecessors.
    pub(super) waited: bool,
    pub(super) start: usize,
    pub(super) stride: usize,
}

/// The next run reuses the memory.
pub(super) struct RunState {
    /// The stack pointer of the engine while a thread runs.
    pub(super) sp: *mut u8,
    pub(super) stacks: Stacks,
    pub(super) random: Random,
    pub(super) fault: Option<UnresolvedFault>,
    /// The number of events that may end a wait.
    pub(super) events: u64,
    pub(super) nodes: Vec<Progress>,
    pub(super) graph: *mut [GraphNode],
    /// The checker; `None` in the unchecked build.
    pub(super) checker: Option<AccessChecker>,
    pub(super) max_blocks: usize,
    #[expect(clippy::vec_box, reason = "threads keep pointers to their block")]
    pub(super) block_pool: Vec<Box<Block>>,
    #[expect(clippy::vec_box, reason = "threads keep pointers to their block")]
    pub(super) parked_blocks: Vec<Box<Block>>,
    pub(super) ready_nodes: Vec<usize>,
    /// The end of each node, in the order of the ends; `None` if the graph is not timed.
    pub(super) ends: Option<Vec<(usize, Instant)>>,
}

impl RunState {
    pub(super) fn new(max_blocks: usize) -> RunState {
        RunState {
            sp: std::ptr::null_mut(),
            stacks: Stacks::default(),
            random: Random::new(0),
            fault: None,
            events: 0,
            nodes: Vec::new(),
            graph: &mut [],
            checker: None,
            max_blocks,
            block_pool: Vec::new(),
            parked_blocks: Vec::new(),
            ready_nodes: Vec::new(),
            ends: None,
        }
    }

    pub(super) fn node(&self, node: usize) -> &GraphNode {
        // SAFETY: `run` keeps the graph borrowed while it runs. Only host tasks change it, and kernels do not run host
        // tasks.
        unsafe { &(&*self.graph)[node] }
    }

    pub(super) fn trigger(&mut self, block: &mut Block) {
        if std::mem::replace(&mut block.triggered, true) {
            return;
        }
        self.nodes[block.node].triggered += 1;
        self.events += 1;
        if self.nodes[block.node].triggered == self.nodes[block.node].blocks {
            self.follow(block.node, EdgeKind::Programmatic);
        }
    }

    /// Marks the outgoing edges of a node as satisfied, if they have this kind. Queues nodes that become ready.
    pub(super) fn follow(&mut self, node: usize, of: EdgeKind) {
        // SAFETY: as in `node`.
        let prepared = unsafe { &(&*self.graph)[node] };
        for &(to, kind) in &prepared.next {
            if kind == of {
                self.nodes[to].missing -= 1;
                if self.nodes[to].missing == 0 {
                    self.ready_nodes.push(to);
                }
            }
        }
    }

    pub(super) fn check_access(
        &mut self,
        block: &mut Block,
        head: &ThreadHead,
        access: &Access,
    ) -> Result<(), Violation> {
        // SAFETY: as in `node`.
        let nodes = unsafe { &*self.graph };
        match &mut self.checker {
            Some(checker) => checker.thread(block, head, nodes, access),
            None => Ok(()),
        }
    }
}
