//! Runs a graph: nodes in a random order that satisfies the edges, blocks in random order, threads until they wait.

use std::rc::Rc;
use std::time::Instant;

use tpc_cuda::{EdgeKind, FaultKind, HostError};

use super::abi::{BlockHead, kind, thread_index};
use super::block::{Block, MAX_DECLARED_SHARED};
use super::block_runner::{BlockOutcome, run_block};
use super::fault::{CodeLocation, UnresolvedFault};
use super::graph::{GraphNode, Task};
use super::race::Reachability;
use super::random::Random;
use super::run_state::{Progress, RunState};

/// The number of consecutive turns without progress before a deadlock is reported.
const MAX_IDLE_TURNS: u32 = 256;
pub(super) enum StopReason {
    Fault(UnresolvedFault),
    Host { label: String, cause: HostError },
}

fn gcd(a: usize, b: usize) -> usize {
    match b {
        0 => a,
        _ => gcd(b, a % b),
    }
}

impl RunState {
    pub(super) fn run(
        &mut self,
        graph: &mut [GraphNode],
        reach: &Rc<Reachability>,
        seed: u64,
    ) -> Result<(), StopReason> {
        if let Some(checker) = &mut self.checker {
            checker.begin(reach);
        }
        self.random = Random::new(seed);
        self.graph = graph;
        self.fault = None;
        self.nodes.clear();
        self.ready_nodes.clear();
        let random = &mut self.random;
        self.nodes.extend(graph.iter().map(|p| {
            let blocks = match &p.task {
                Task::Kernel(k) => k.grid.iter().map(|&n| n as usize).product(),
                _ => 1,
            };
            let mut stride = 1 + random.below(blocks);
            while gcd(stride, blocks) != 1 {
                stride += 1;
            }
            Progress {
                missing: p.before,
                blocks,
                start: random.below(blocks),
                stride,
                ..Progress::default()
            }
        }));
        let first = (0..graph.len()).filter(|&n| self.nodes[n].missing == 0);
        self.ready_nodes.extend(first);
        let result = self.run_to_end();
        let parked = std::mem::take(&mut self.parked_blocks);
        self.block_pool.extend(parked);
        if result.is_err() {
            self.stacks.reset();
        }
        result
    }

    fn run_to_end(&mut self) -> Result<(), StopReason> {
        let (mut idle_turns, mut events) = (0, self.events);
        loop {
            let n = self.parked_blocks.len();
            match (self.next_ready_node(), self.next_parked_block()) {
                (None, None) if n == 0 => return Ok(()),
                (None, None) => return Err(self.deadlock()),
                (Some(at), block) if block.is_none() || self.random.below(4) > 0 => {
                    self.start(at)?;
                    idle_turns = 0;
                }
                (_, block) => {
                    let block = block.expect("invariant: a block was chosen if no node can start");
                    let block = self.parked_blocks.swap_remove(block);
                    self.resume(block)?;
                    idle_turns = match self.events == events {
                        true => idle_turns + 1,
                        false => 0,
                    };
                    events = self.events;
                    if idle_turns > MAX_IDLE_TURNS * n as u32 && self.next_ready_node().is_none() {
                        return Err(self.deadlock());
                    }
                }
            }
        }
    }

    /// Returns the position of a random ready node whose device has room for a block.
    fn next_ready_node(&mut self) -> Option<usize> {
        if self.ready_nodes.is_empty() {
            return None;
        }
        let first = self.random.below(self.ready_nodes.len());
        let n = self.ready_nodes.len();
        (0..n)
            .map(|i| (first + i) % n)
            .find(|&at| self.has_room(at))
    }

    /// Returns the position of a random parked block. Skips blocks whose live threads all wait for unfinished
    /// programmatic predecessors.
    fn next_parked_block(&mut self) -> Option<usize> {
        let n = self.parked_blocks.len();
        if n == 0 {
            return None;
        }
        let first = self.random.below(n);
        (0..n).map(|i| (first + i) % n).find(|&at| {
            let block = &self.parked_blocks[at];
            let before = &self.node(block.node).programmatic;
            block.waiting < block.alive || before.iter().all(|&n| self.nodes[n].over)
        })
    }

    fn has_room(&self, at: usize) -> bool {
        let on = |node: usize| match &self.node(node).task {
            Task::Kernel(k) => Some(k.device),
            _ => None,
        };
        let device = on(self.ready_nodes[at]);
        let busy = self.parked_blocks.iter().filter(|b| on(b.node) == device);
        device.is_none() || busy.count() < self.max_blocks
    }

    fn start(&mut self, at: usize) -> Result<(), StopReason> {
        let node = self.ready_nodes[at];
        let progress = &mut self.nodes[node];
        let number = (progress.start + progress.begun * progress.stride) % progress.blocks;
        progress.begun += 1;
        if progress.begun == progress.blocks {
            self.ready_nodes.swap_remove(at);
        }
        self.check_node_access(node)?;
        // SAFETY: as in `node`. No kernel runs now, so there are no other references to the graph.
        let prepared = unsafe { &mut (&mut *self.graph)[node] };
        match &mut prepared.task {
            Task::Kernel(launch) => {
                let mut block = self.block_pool.pop().unwrap_or_else(Block::new);
                let number = number as u32;
                let [x, y, _] = launch.grid;
                let head = BlockHead {
                    index: [number % x, number / x % y, number / x / y],
                    threads: launch.block,
                    blocks: launch.grid,
                    dynamic_bytes: launch.shared_bytes,
                    dynamic: std::ptr::null_mut(),
                };
                if let Some(checker) = &mut self.checker {
                    let clocks = block.clocks.get_or_insert_default();
                    checker
                        .races
                        .begin_block(clocks, node, head.index, head.threads);
                }
                block.begin(
                    node,
                    head,
                    MAX_DECLARED_SHARED + launch.shared_bytes as usize,
                );
                return self.resume(block);
            }
            // SAFETY: the ranges were checked to be within allocations, and do not overlap.
            Task::Copy(c) => unsafe {
                let (from, to) = (c.from.address as *const u8, c.to.address as *mut u8);
                std::ptr::copy_nonoverlapping(from, to, c.bytes as usize);
            },
            // SAFETY: as above.
            Task::Set(s) => unsafe {
                (s.to.address as *mut u8).write_bytes(s.value, s.bytes as usize);
            },
            Task::Host(work) => work().map_err(|cause| StopReason::Host {
                label: prepared.label.clone(),
                cause,
            })?,
            Task::Join => {}
        }
        self.nodes[node].ended = 1;
        self.end(node)
    }

    fn check_node_access(&mut self, node: usize) -> Result<(), StopReason> {
        // SAFETY: as in `node`.
        let nodes = unsafe { &*self.graph };
        let Some(checker) = &mut self.checker else {
            return Ok(());
        };
        let result = match &nodes[node].task {
            Task::Copy(c) => checker
                .node(node, nodes, (c.from, c.bytes), kind::LOAD)
                .and_then(|()| checker.node(node, nodes, (c.to, c.bytes), kind::STORE)),
            Task::Set(s) => checker.node(node, nodes, (s.to, s.bytes), kind::STORE),
            Task::Kernel(_) | Task::Host(_) | Task::Join => Ok(()),
        };
        result.map_err(StopReason::Fault)
    }

    fn resume(&mut self, mut block: Box<Block>) -> Result<(), StopReason> {
        // SAFETY: the block and the engine outlive the call, which accesses them only through these pointers.
        let outcome = unsafe { run_block(self, &raw mut *block) };
        match outcome {
            BlockOutcome::Ended => {
                let node = block.node;
                self.trigger(&mut block);
                if let (Some(checker), Some(clocks)) = (&mut self.checker, &block.clocks) {
                    checker.races.end_block(clocks, node);
                }
                self.block_pool.push(block);
                self.nodes[node].ended += 1;
                self.events += 1;
                match self.nodes[node].ended == self.nodes[node].blocks {
                    true => self.end(node),
                    false => Ok(()),
                }
            }
            BlockOutcome::Parked => {
                self.parked_blocks.push(block);
                Ok(())
            }
            BlockOutcome::Stopped => {
                self.block_pool.push(block);
                let fault = self.fault.take();
                Err(StopReason::Fault(
                    fault.expect("invariant: the graph stopped at a fault"),
                ))
            }
        }
    }

    fn end(&mut self, node: usize) -> Result<(), StopReason> {
        let early = !self.node(node).programmatic.is_empty() && !self.nodes[node].waited;
        if early {
            return Err(StopReason::Fault(UnresolvedFault {
                kind: FaultKind::Race,
                node,
                block: [0; 3],
                thread: [0; 3],
                at: CodeLocation::Named("the end of the kernel".into()),
                other: None,
                what: "no thread calls wait_dependencies, so successors may start before the programmatic \
                       predecessors have ended"
                    .into(),
            }));
        }
        if let Some(ends) = &mut self.ends {
            ends.push((node, Instant::now()));
        }
        self.nodes[node].over = true;
        self.events += 1;
        self.follow(node, EdgeKind::Full);
        Ok(())
    }

    fn deadlock(&self) -> StopReason {
        let block = &self.parked_blocks[0];
        let fiber = block
            .fibers
            .iter()
            .position(|f| f.site.is_some() && !f.ended);
        let thread = fiber.unwrap_or(0) as u32;
        let waiting = self
            .ready_nodes
            .iter()
            .filter(|&&n| self.nodes[n].begun > 0);
        let mut what = format!(
            "{} blocks wait forever: {}",
            self.parked_blocks.len(),
            block.describe_waits()
        );
        if !self.ready_nodes.is_empty() {
            what += &format!(
                "; a device runs {} blocks at once, and {} nodes have blocks that could not start",
                self.max_blocks,
                waiting.count().max(1)
            );
        }
        StopReason::Fault(UnresolvedFault {
            kind: FaultKind::Deadlock,
            node: block.node,
            block: block.head.index,
            thread: thread_index(block.head.threads, thread),
            at: CodeLocation::Named(
                fiber
                    .and_then(|i| block.fibers[i].site)
                    .map_or_else(String::new, |s| s.at()),
            ),
            other: None,
            what,
        })
    }
}
