//! Race detection.
//!
//! Each byte stores the *stamps* of its last write and of the reads since. A stamp identifies a thread, an interval
//! between two synchronisations of the thread, and a code location. An access races with an unordered stamp of the
//! byte, unless both are reads or both are atomic.

mod clocks;
mod happens_before;
mod order;
mod sync;

use std::collections::{BTreeMap, BTreeSet, HashMap};

pub(super) use clocks::BlockClocks;
use clocks::NONE;
use happens_before::HappensBefore;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Origin {
    /// A thread at one clock value.
    Thread {
        instance: u32,
        epoch: u32,
        thread: u32,
        clock: u32,
    },
    /// Threads of a warp, with clocks up to `clock`.
    Warp {
        instance: u32,
        epoch: u32,
        warp: u32,
        clock: u32,
    },
    /// Threads of a block that have passed at most `epoch` barriers.
    Block {
        instance: u32,
        epoch: u32,
    },
    /// Several blocks of a kernel, or a copy.
    Node {
        node: u32,
    },
    Pair {
        first: u32,
        second: u32,
    },
}

#[derive(Clone, Copy, Debug)]
struct Stamp {
    origin: u32,
    pc: usize,
    /// 0 for a plain access; the scope of an atomic: 1 device, 2 system.
    atomic: u8,
}

/// The shadow cell of a byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub(super) struct ShadowCell {
    write: u32,
    read: u32,
}

/// The accesses that a flag publishes, with the scope: 0 block, 1 device, 2 system.
#[derive(Debug, Default)]
struct Flag {
    known: HappensBefore,
    scope: u32,
    device: u32,
    instance: u32,
}

pub(super) struct Accessor<'a> {
    pub(super) node: usize,
    pub(super) device: u32,
    /// The clocks of the block, and the thread; `None` for a copy.
    pub(super) thread: Option<(&'a mut BlockClocks, usize)>,
}

#[derive(Debug)]
pub(super) struct Conflict {
    pub(super) node: usize,
    pub(super) pc: usize,
    pub(super) origin: String,
    /// True if the earlier access was a write.
    pub(super) wrote: bool,
}

#[derive(Debug, Default)]
pub(super) struct Reachability {
    words: usize,
    /// For each node, the bit set of nodes that have ended when the node starts.
    start: Vec<u64>,
    /// For each node, the bit set of nodes that have ended when the node ends.
    end: Vec<u64>,
}

impl Reachability {
    /// `order` is topological; `next` lists the successors of each node, with true for a full edge.
    pub(super) fn new(order: &[usize], next: &[Vec<(usize, bool)>]) -> Reachability {
        let n = order.len();
        let words = n.div_ceil(64);
        let mut start = vec![0_u64; n * words];
        let mut end = vec![0_u64; n * words];
        for &from in order {
            // `end` already has the programmatic predecessors: the node waits for them before it ends.
            end[from * words + from / 64] |= 1 << (from % 64);
            for w in 0..words {
                end[from * words + w] |= start[from * words + w];
            }
            for &(to, full) in &next[from] {
                for w in 0..words {
                    let ended = end[from * words + w];
                    match full {
                        true => start[to * words + w] |= ended,
                        false => {
                            start[to * words + w] |= start[from * words + w];
                            end[to * words + w] |= ended;
                        }
                    }
                }
            }
        }
        Reachability { words, start, end }
    }

    fn starts_after(&self, first: usize, second: usize) -> bool {
        self.start[second * self.words + first / 64] >> (first % 64) & 1 == 1
    }

    fn ends_after(&self, first: usize, second: usize) -> bool {
        self.end[second * self.words + first / 64] >> (first % 64) & 1 == 1
    }
}

#[derive(Default)]
pub(super) struct RaceDetector {
    reach: std::rc::Rc<Reachability>,
    origins: Vec<Origin>,
    stamps: Vec<Stamp>,
    first: u32,
    flags: HashMap<usize, Flag>,
    instances: Vec<(usize, [u32; 3], [u32; 3])>,
    /// The summary stamps of readers, by origin and scope.
    summaries: HashMap<(Origin, u8), u32>,
    /// The accesses that each node acquired from flags. Successors inherit them.
    acquired: BTreeMap<usize, HappensBefore>,
    /// The last pair of stamps that was ordered.
    ordered: (u32, u32),
}

impl RaceDetector {
    /// Starts a graph, ordered after all earlier graphs. Returns true if the caller must clear the shadow cells first.
    pub(super) fn begin(&mut self, reach: &std::rc::Rc<Reachability>) -> bool {
        self.reach = std::rc::Rc::clone(reach);
        let next = self.first as usize + self.stamps.len();
        let wraps = next > 3 << 30;
        self.first = match wraps {
            true => 1,
            false => next.max(1) as u32,
        };
        self.origins.clear();
        self.stamps.clear();
        self.flags.clear();
        self.instances.clear();
        self.summaries.clear();
        self.acquired.clear();
        self.origins.push(Origin::Node { node: u32::MAX });
        wraps
    }

    /// Starts a block, which inherits the acquired accesses of preceding nodes.
    pub(super) fn begin_block(
        &mut self,
        clocks: &mut BlockClocks,
        node: usize,
        index: [u32; 3],
        threads: [u32; 3],
    ) {
        self.instances.push((node, index, threads));
        let count = threads.iter().product::<u32>() as usize;
        clocks.begin(self.instances.len() as u32 - 1, count);
        for (&before, known) in &self.acquired {
            if self.reach.starts_after(before, node) {
                clocks.known.join(known);
            }
        }
        self.prune(&mut clocks.known, node);
    }

    pub(super) fn end_block(&mut self, clocks: &BlockClocks, node: usize) {
        let mut known = clocks.known.clone();
        for t in &clocks.threads {
            if let Some(acquired) = &t.acquired {
                known.join(acquired);
            }
        }
        if !known.is_empty() {
            self.acquired.entry(node).or_default().join(&known);
        }
    }

    /// Removes accesses that graph edges already order.
    fn prune(&self, known: &mut HappensBefore, node: usize) {
        let of = |i: u32| self.instances[i as usize].0;
        let nodes: BTreeSet<usize> = known.blocks.keys().map(|&i| of(i)).collect();
        let follows = |n: usize| {
            let mut later = nodes.iter().filter(|&&m| m != n);
            self.reach.starts_after(n, node) || later.any(|&m| self.reach.starts_after(n, m))
        };
        known.blocks.retain(|&i, _| !follows(of(i)));
        known.nodes.retain(|&n| !follows(n));
    }

    fn stamp(&self, stamp: u32) -> Option<Stamp> {
        let at = stamp.checked_sub(self.first)?;
        self.stamps.get(at as usize).copied()
    }

    fn new_stamp(&mut self, origin: u32, pc: usize, atomic: u8) -> u32 {
        self.stamps.push(Stamp { origin, pc, atomic });
        self.first + self.stamps.len() as u32 - 1
    }

    fn new_origin(&mut self, origin: Origin) -> u32 {
        self.origins.push(origin);
        self.origins.len() as u32 - 1
    }

    fn current_stamp(&mut self, actor: &mut Accessor<'_>, pc: usize, atomic: u8) -> u32 {
        let Some((clocks, thread)) = &mut actor.thread else {
            let node = actor.node as u32;
            let origin = self.new_origin(Origin::Node { node });
            return self.new_stamp(origin, pc, atomic);
        };
        let (instance, epoch) = (clocks.instance, clocks.epoch);
        let (t, number) = (&mut clocks.threads[*thread], *thread as u32);
        let key = pc << 2 | usize::from(atomic);
        let place = *t.stamp_slot(key);
        if place.0 == key && place.1 != NONE {
            return place.1;
        }
        if t.origin == NONE {
            t.origin = self.new_origin(Origin::Thread {
                instance,
                epoch,
                thread: number,
                clock: t.clock,
            });
        }
        let stamp = self.new_stamp(t.origin, pc, atomic);
        *t.stamp_slot(key) = (key, stamp);
        stamp
    }

    pub(super) fn access(
        &mut self,
        actor: &mut Accessor<'_>,
        cells: &mut [ShadowCell],
        (writes, atomic, pc): (bool, u8, usize),
    ) -> Result<(), Conflict> {
        let now = self.current_stamp(actor, pc, atomic);
        // Neighbouring bytes usually have the same stamps.
        let mut last = None;
        for cell in cells {
            if !writes && cell.read == now || writes && cell.write == now && cell.read == NONE {
                continue;
            }
            if let Some((before, after)) = last
                && before == *cell
            {
                *cell = after;
                continue;
            }
            let before = *cell;
            self.check(actor, cell.write, now, true)?;
            if writes {
                self.check(actor, cell.read, now, false)?;
                (cell.write, cell.read) = (now, NONE);
            } else {
                cell.read = self.merge(actor, cell.read, now);
            }
            last = Some((before, *cell));
        }
        Ok(())
    }

    fn check(
        &mut self,
        actor: &Accessor<'_>,
        then: u32,
        now: u32,
        wrote: bool,
    ) -> Result<(), Conflict> {
        let (Some(before), Some(this)) = (self.stamp(then), self.stamp(now)) else {
            return Ok(());
        };
        if then == now || self.ordered == (then, now) {
            return Ok(());
        }
        let origin = self.origins[before.origin as usize];
        let atomic = before.atomic > 0 && this.atomic > 0;
        if atomic && (before.atomic.min(this.atomic) > 1 || self.node(origin) == Some(actor.node)) {
            return Ok(());
        }
        if self.is_ordered(origin, actor) {
            self.ordered = (then, now);
            return Ok(());
        }
        Err(self.conflict(before, wrote))
    }

    fn conflict(&self, stamp: Stamp, wrote: bool) -> Conflict {
        let origin = self.origins[stamp.origin as usize];
        let text = |instance: u32, thread: Option<u32>| {
            let (_, [x, y, z], threads) = self.instances[instance as usize];
            let thread = thread.map(|t| {
                let [x, y, z] = super::abi::thread_index(threads, t);
                format!(", thread {x},{y},{z}")
            });
            format!("block {x},{y},{z}{}", thread.unwrap_or_default())
        };
        let (node, origin) = match origin {
            Origin::Thread {
                instance, thread, ..
            } => (
                self.instances[instance as usize].0,
                text(instance, Some(thread)),
            ),
            Origin::Warp { instance, .. } | Origin::Block { instance, .. } => {
                (self.instances[instance as usize].0, text(instance, None))
            }
            Origin::Node { node } => (node as usize, String::new()),
            Origin::Pair { second, .. } => match self.stamp(second) {
                Some(second) => return self.conflict(second, wrote),
                None => (0, String::new()),
            },
        };
        let pc = stamp.pc;
        Conflict {
            node,
            pc,
            origin,
            wrote,
        }
    }
}
