//! Runs a graph: nodes in any order that its edges allow, blocks in any order, threads until they wait.

use std::ffi::c_void;
use std::rc::Rc;
use std::sync::Arc;

use tpc_cuda::{Args, CopyNode, Device, EdgeKind, FaultKind, HostError, HostWork, SetNode};

use super::abi::{BlockHead, kind};
use super::block::Block;
use super::checked::Watch;
use super::checks::Reach;
use super::fault::{RawFault, Where};
use super::fiber::Stacks;
use super::image::{Image, Kernel};
use super::random::Random;
use super::turns::{Outcome, index, run_block};

/// How often all that wait look in vain before they are said to wait for ever.
const PATIENCE: u32 = 256;
/// The most bytes of shared memory that kernels may declare, as on devices.
pub(super) const DECLARED: usize = 48 << 10;

/// A launch of a kernel, ready to run.
pub(super) struct Launch {
    pub(super) device: Device,
    pub(super) image: Arc<Image>,
    pub(super) kernel: Kernel,
    pub(super) name: String,
    pub(super) grid: [u32; 3],
    pub(super) block: [u32; 3],
    pub(super) shared_bytes: u32,
    /// Where the kernel's arguments point to.
    pub(super) _args: Args,
}

/// What a node does.
pub(super) enum Task {
    Kernel(Launch),
    Copy(CopyNode),
    Set(SetNode),
    Host(HostWork),
    Join,
}

/// A node with the edges that leave it.
pub(super) struct Prepared {
    pub(super) label: String,
    pub(super) task: Task,
    pub(super) next: Vec<(usize, EdgeKind)>,
    pub(super) before: usize,
    /// The kernels that `wait_dependencies` waits for.
    pub(super) programmatic: Vec<usize>,
}

/// What became of a node so far.
#[derive(Clone, Default)]
pub(super) struct Progress {
    pub(super) missing: usize,
    pub(super) begun: usize,
    pub(super) triggered: usize,
    pub(super) ended: usize,
    pub(super) blocks: usize,
    pub(super) over: bool,
    /// Whether a thread has waited for the programmatic predecessors.
    pub(super) waited: bool,
    start: usize,
    stride: usize,
}

/// Why a graph did not run to its end.
pub(super) enum Stop {
    Fault(RawFault),
    Host { label: String, cause: HostError },
}

/// Runs graphs.
pub(super) struct Engine {
    /// Where the engine was left while a thread runs.
    pub(super) sp: *mut u8,
    pub(super) stacks: Stacks,
    pub(super) random: Random,
    pub(super) fault: Option<RawFault>,
    /// Grows whenever something happens that others may wait for.
    pub(super) events: u64,
    pub(super) nodes: Vec<Progress>,
    pub(super) graph: *mut [Prepared],
    /// The checks, in the checked build.
    pub(super) watch: Option<Watch>,
    most_blocks: usize,
    #[expect(clippy::vec_box, reason = "threads keep pointers to their block")]
    pool: Vec<Box<Block>>,
    #[expect(clippy::vec_box, reason = "threads keep pointers to their block")]
    parked: Vec<Box<Block>>,
    ready: Vec<usize>,
}

fn gcd(a: usize, b: usize) -> usize {
    match b {
        0 => a,
        _ => gcd(b, a % b),
    }
}

impl Engine {
    /// An engine whose devices run at most so many blocks at once.
    pub(super) fn new(most_blocks: usize) -> Engine {
        Engine {
            sp: std::ptr::null_mut(),
            stacks: Stacks::default(),
            random: Random::new(0),
            fault: None,
            events: 0,
            nodes: Vec::new(),
            graph: &mut [],
            watch: None,
            most_blocks,
            pool: Vec::new(),
            parked: Vec::new(),
            ready: Vec::new(),
        }
    }

    /// A node of the graph that runs.
    pub(super) fn node(&self, node: usize) -> &Prepared {
        // SAFETY: `run` keeps the graph borrowed while it runs; nothing changes it but a host task, which is not a kernel.
        unsafe { &(&*self.graph)[node] }
    }

    /// Runs a graph to its end.
    pub(super) fn run(
        &mut self,
        graph: &mut [Prepared],
        reach: &Rc<Reach>,
        seed: u64,
    ) -> Result<(), Stop> {
        if let Some(watch) = &mut self.watch {
            watch.begin(reach);
        }
        self.random = Random::new(seed);
        self.graph = graph;
        self.fault = None;
        self.nodes.clear();
        self.ready.clear();
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
        self.ready.extend(first);
        let result = self.go();
        let parked = std::mem::take(&mut self.parked);
        self.pool.extend(parked);
        if result.is_err() {
            self.stacks.reset();
        }
        result
    }

    fn go(&mut self) -> Result<(), Stop> {
        let (mut vain, mut seen) = (0, self.events);
        loop {
            let n = self.parked.len();
            match (self.startable(), self.resumable()) {
                (None, None) if n == 0 => return Ok(()),
                (None, None) => return Err(self.deadlock()),
                (Some(at), block) if block.is_none() || self.random.below(4) > 0 => {
                    self.start(at)?;
                    vain = 0;
                }
                (_, block) => {
                    let block = block.expect("invariant: nothing can start, or this was chosen");
                    let block = self.parked.swap_remove(block);
                    self.resume(block)?;
                    vain = match self.events == seen {
                        true => vain + 1,
                        false => 0,
                    };
                    seen = self.events;
                    if vain > PATIENCE * n as u32 && self.startable().is_none() {
                        return Err(self.deadlock());
                    }
                }
            }
        }
    }

    /// A ready node, by its position, whose device has room for a block.
    fn startable(&mut self) -> Option<usize> {
        if self.ready.is_empty() {
            return None;
        }
        let first = self.random.below(self.ready.len());
        let n = self.ready.len();
        (0..n)
            .map(|i| (first + i) % n)
            .find(|&at| self.has_room(at))
    }

    /// A block that waits, by its position, but for those that wait for a kernel before them that has not ended.
    fn resumable(&mut self) -> Option<usize> {
        let n = self.parked.len();
        if n == 0 {
            return None;
        }
        let first = self.random.below(n);
        (0..n).map(|i| (first + i) % n).find(|&at| {
            let block = &self.parked[at];
            let before = &self.node(block.node).programmatic;
            block.waiting < block.alive || before.iter().all(|&n| self.nodes[n].over)
        })
    }

    fn has_room(&self, at: usize) -> bool {
        let on = |node: usize| match &self.node(node).task {
            Task::Kernel(k) => Some(k.device),
            _ => None,
        };
        let device = on(self.ready[at]);
        let busy = self.parked.iter().filter(|b| on(b.node) == device);
        device.is_none() || busy.count() < self.most_blocks
    }

    /// Starts the next block of a ready node, or does its work.
    fn start(&mut self, at: usize) -> Result<(), Stop> {
        let node = self.ready[at];
        let progress = &mut self.nodes[node];
        let number = (progress.start + progress.begun * progress.stride) % progress.blocks;
        progress.begun += 1;
        if progress.begun == progress.blocks {
            self.ready.swap_remove(at);
        }
        self.look_at_node(node)?;
        // SAFETY: as in `node`. No kernel runs now, so nothing else looks at the graph.
        let prepared = unsafe { &mut (&mut *self.graph)[node] };
        match &mut prepared.task {
            Task::Kernel(launch) => {
                let mut block = self.pool.pop().unwrap_or_else(Block::new);
                let number = number as u32;
                let [x, y, _] = launch.grid;
                let head = BlockHead {
                    index: [number % x, number / x % y, number / x / y],
                    threads: launch.block,
                    blocks: launch.grid,
                    dynamic_bytes: launch.shared_bytes,
                    dynamic: std::ptr::null_mut(),
                };
                if let Some(watch) = &mut self.watch {
                    let clocks = block.clocks.get_or_insert_default();
                    watch.checks.block(clocks, node, head.index, head.threads);
                }
                block.begin(node, head, DECLARED + launch.shared_bytes as usize);
                return self.resume(block);
            }
            // SAFETY: the ranges were checked to be within memory, and do not overlap.
            Task::Copy(c) => unsafe {
                let (from, to) = (c.from.address as *const u8, c.to.address as *mut u8);
                std::ptr::copy_nonoverlapping(from, to, c.bytes as usize);
            },
            // SAFETY: as above.
            Task::Set(s) => unsafe {
                (s.to.address as *mut u8).write_bytes(s.value, s.bytes as usize);
            },
            Task::Host(work) => work().map_err(|cause| Stop::Host {
                label: prepared.label.clone(),
                cause,
            })?,
            Task::Join => {}
        }
        self.nodes[node].ended = 1;
        self.end(node)
    }

    /// The checks look at what a copy or a fill is about to do.
    fn look_at_node(&mut self, node: usize) -> Result<(), Stop> {
        // SAFETY: as in `node`.
        let nodes = unsafe { &*self.graph };
        let Some(watch) = &mut self.watch else {
            return Ok(());
        };
        let result = match &nodes[node].task {
            Task::Copy(c) => watch
                .node(node, nodes, (c.from, c.bytes), kind::LOAD)
                .and_then(|()| watch.node(node, nodes, (c.to, c.bytes), kind::STORE)),
            Task::Set(s) => watch.node(node, nodes, (s.to, s.bytes), kind::STORE),
            Task::Kernel(_) | Task::Host(_) | Task::Join => Ok(()),
        };
        result.map_err(Stop::Fault)
    }

    /// Runs a block until it has ended, or all its threads wait for others.
    fn resume(&mut self, mut block: Box<Block>) -> Result<(), Stop> {
        // SAFETY: the block and the engine outlive the call, and neither is used but through these pointers in it.
        let outcome = unsafe { run_block(self, &raw mut *block) };
        match outcome {
            Outcome::Ended => {
                let node = block.node;
                self.trigger(&mut block);
                if let (Some(watch), Some(clocks)) = (&mut self.watch, &block.clocks) {
                    watch.checks.block_ends(clocks, node);
                }
                self.pool.push(block);
                self.nodes[node].ended += 1;
                self.events += 1;
                match self.nodes[node].ended == self.nodes[node].blocks {
                    true => self.end(node),
                    false => Ok(()),
                }
            }
            Outcome::Parked => {
                self.parked.push(block);
                Ok(())
            }
            Outcome::Stopped => {
                self.pool.push(block);
                let fault = self.fault.take();
                Err(Stop::Fault(
                    fault.expect("invariant: it stopped at a fault"),
                ))
            }
        }
    }

    /// A block lets dependent kernels start.
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

    fn end(&mut self, node: usize) -> Result<(), Stop> {
        let early = !self.node(node).programmatic.is_empty() && !self.nodes[node].waited;
        if early {
            return Err(Stop::Fault(RawFault {
                kind: FaultKind::Race,
                node,
                block: [0; 3],
                thread: [0; 3],
                at: Where::Named("its end".into()),
                other: None,
                what: "no thread calls wait_dependencies, so what follows may start before the programmatic \
                       predecessors have ended"
                    .into(),
            }));
        }
        self.nodes[node].over = true;
        self.events += 1;
        self.follow(node, EdgeKind::Full);
        Ok(())
    }

    /// What waits for the edges of a kind that leave the node.
    fn follow(&mut self, node: usize, of: EdgeKind) {
        // SAFETY: as in `node`.
        let prepared = unsafe { &(&*self.graph)[node] };
        for &(to, kind) in &prepared.next {
            if kind == of {
                self.nodes[to].missing -= 1;
                if self.nodes[to].missing == 0 {
                    self.ready.push(to);
                }
            }
        }
    }

    /// Everything that was begun waits for ever.
    fn deadlock(&self) -> Stop {
        let block = &self.parked[0];
        let fiber = block
            .fibers
            .iter()
            .position(|f| f.site.is_some() && !f.ended);
        let thread = fiber.unwrap_or(0) as u32;
        let waiting = self.ready.iter().filter(|&&n| self.nodes[n].begun > 0);
        let mut what = format!(
            "{} blocks wait for what does not come: {}",
            self.parked.len(),
            block.waits()
        );
        if !self.ready.is_empty() {
            what += &format!(
                "; a device runs {} blocks at once, and {} nodes have blocks that could not start",
                self.most_blocks,
                waiting.count().max(1)
            );
        }
        Stop::Fault(RawFault {
            kind: FaultKind::Deadlock,
            node: block.node,
            block: block.head.index,
            thread: index(block.head.threads, thread),
            at: Where::Named(
                fiber
                    .and_then(|i| block.fibers[i].site)
                    .map_or_else(String::new, |s| s.at()),
            ),
            other: None,
            what,
        })
    }
}

/// The arguments of a kernel by their addresses, as its entry takes them.
pub(super) fn addresses(args: &Args) -> Vec<*const c_void> {
    args.iter().map(|a| a.as_ptr().cast()).collect()
}
