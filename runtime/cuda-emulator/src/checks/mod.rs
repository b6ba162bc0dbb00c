//! Checks of every access of a kernel: the order of accesses.
//!
//! A byte remembers who wrote it last and who has read it since, by *stamps*: a thread between two of its synchronisations,
//! and the place in the code. An access whose stamp is not ordered after those of the byte is a race, unless both only read
//! or both are atomic.

mod clocks;
mod known;
mod order;
mod sync;

use std::collections::{BTreeMap, BTreeSet, HashMap};

pub(super) use clocks::BlockClocks;
use clocks::NONE;
use known::Known;

/// Who made accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Who {
    /// A thread until its clock goes on.
    Thread {
        instance: u32,
        epoch: u32,
        thread: u32,
        clock: u32,
    },
    /// Several threads of a warp, with clocks up to this.
    Warp {
        instance: u32,
        epoch: u32,
        warp: u32,
        clock: u32,
    },
    /// Several threads of a block, before it has passed one more barrier than so many.
    Block { instance: u32, epoch: u32 },
    /// A node: several blocks of a kernel, or a copy.
    Node { node: u32 },
    /// Both of two stamps.
    Both { first: u32, second: u32 },
}

/// An access: who made it, and where it stands in the code.
#[derive(Clone, Copy, Debug)]
struct Stamp {
    who: u32,
    pc: usize,
    /// 0 for a plain access; for an atomic one 1 for the device, 2 for the system.
    atomic: u8,
}

/// What a byte remembers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub(super) struct Cell {
    write: u32,
    read: u32,
}

/// What a flag makes known, and to whom: 0 its block, 1 its device, 2 all.
#[derive(Debug, Default)]
struct Flag {
    known: Known,
    scope: u32,
    device: u32,
    instance: u32,
}

/// Who makes an access.
pub(super) struct Actor<'a> {
    pub(super) node: usize,
    pub(super) device: u32,
    /// The block and the thread; a copy has none.
    pub(super) thread: Option<(&'a mut BlockClocks, usize)>,
}

/// The other side of a race.
#[derive(Debug)]
pub(super) struct Conflict {
    pub(super) node: usize,
    pub(super) pc: usize,
    /// The block and the thread, as far as they are known.
    pub(super) who: String,
    /// Whether it wrote.
    pub(super) wrote: bool,
}

/// Which nodes come before which.
#[derive(Debug, Default)]
pub(super) struct Reach {
    words: usize,
    /// Per node, those that have ended when it starts.
    start: Vec<u64>,
    /// Per node, those that have ended when it ends.
    end: Vec<u64>,
}

impl Reach {
    /// From nodes in an order that the edges allow, and per node what follows it and whether by a full edge.
    pub(super) fn new(order: &[usize], next: &[Vec<(usize, bool)>]) -> Reach {
        let n = order.len();
        let words = n.div_ceil(64);
        let mut start = vec![0_u64; n * words];
        let mut end = vec![0_u64; n * words];
        for &from in order {
            // Its programmatic predecessors stand in `end` already: it waits for them.
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
        Reach { words, start, end }
    }

    /// Whether the first has ended when the second starts.
    fn starts_after(&self, first: usize, second: usize) -> bool {
        self.start[second * self.words + first / 64] >> (first % 64) & 1 == 1
    }

    /// Whether the first has ended when the second has.
    fn ends_after(&self, first: usize, second: usize) -> bool {
        self.end[second * self.words + first / 64] >> (first % 64) & 1 == 1
    }
}

/// The order of all accesses of a graph that runs.
#[derive(Default)]
pub(super) struct Checks {
    reach: std::rc::Rc<Reach>,
    whos: Vec<Who>,
    stamps: Vec<Stamp>,
    first: u32,
    flags: HashMap<usize, Flag>,
    instances: Vec<(usize, [u32; 3], [u32; 3])>,
    /// The stamps of several readers, by who they are.
    summaries: HashMap<(Who, u8), u32>,
    /// What nodes learnt from flags, which those after them know, too.
    learnt: BTreeMap<usize, Known>,
    /// What two stamps found the last time.
    ordered: (u32, u32),
}

impl Checks {
    /// Starts a graph: what was done before it comes before all of it. Whether cells must be forgotten first.
    pub(super) fn begin(&mut self, reach: &std::rc::Rc<Reach>) -> bool {
        self.reach = std::rc::Rc::clone(reach);
        let next = self.first as usize + self.stamps.len();
        let wraps = next > 3 << 30;
        self.first = match wraps {
            true => 1,
            false => next.max(1) as u32,
        };
        self.whos.clear();
        self.stamps.clear();
        self.flags.clear();
        self.instances.clear();
        self.summaries.clear();
        self.learnt.clear();
        self.whos.push(Who::Node { node: u32::MAX });
        wraps
    }

    /// Starts a block.
    pub(super) fn block(
        &mut self,
        clocks: &mut BlockClocks,
        node: usize,
        index: [u32; 3],
        threads: [u32; 3],
    ) {
        self.instances.push((node, index, threads));
        let count = threads.iter().product::<u32>() as usize;
        clocks.begin(self.instances.len() as u32 - 1, count);
        for (&before, known) in &self.learnt {
            if self.reach.starts_after(before, node) {
                clocks.known.join(known);
            }
        }
        self.prune(&mut clocks.known, node);
    }

    /// Ends a block: what follows its node knows what it learnt.
    pub(super) fn block_ends(&mut self, clocks: &BlockClocks, node: usize) {
        let mut known = clocks.known.clone();
        for t in &clocks.threads {
            if let Some(learnt) = &t.learnt {
                known.join(learnt);
            }
        }
        if !known.is_empty() {
            self.learnt.entry(node).or_default().join(&known);
        }
    }

    /// Drops what follows from edges: what a node knows, and blocks that come before others that are known.
    fn prune(&self, known: &mut Known, node: usize) {
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

    fn new_stamp(&mut self, who: u32, pc: usize, atomic: u8) -> u32 {
        self.stamps.push(Stamp { who, pc, atomic });
        self.first + self.stamps.len() as u32 - 1
    }

    fn new_who(&mut self, who: Who) -> u32 {
        self.whos.push(who);
        self.whos.len() as u32 - 1
    }

    /// The stamp of an access that is made now.
    fn now(&mut self, actor: &mut Actor<'_>, pc: usize, atomic: u8) -> u32 {
        let Some((clocks, thread)) = &mut actor.thread else {
            let node = actor.node as u32;
            let who = self.new_who(Who::Node { node });
            return self.new_stamp(who, pc, atomic);
        };
        let (instance, epoch) = (clocks.instance, clocks.epoch);
        let (t, number) = (&mut clocks.threads[*thread], *thread as u32);
        let key = pc << 2 | usize::from(atomic);
        let place = *t.place(key);
        if place.0 == key && place.1 != NONE {
            return place.1;
        }
        if t.who == NONE {
            t.who = self.new_who(Who::Thread {
                instance,
                epoch,
                thread: number,
                clock: t.clock,
            });
        }
        let stamp = self.new_stamp(t.who, pc, atomic);
        *t.place(key) = (key, stamp);
        stamp
    }

    /// Notes an access to bytes, and finds what it races with.
    pub(super) fn access(
        &mut self,
        actor: &mut Actor<'_>,
        cells: &mut [Cell],
        (writes, atomic, pc): (bool, u8, usize),
    ) -> Result<(), Conflict> {
        let now = self.now(actor, pc, atomic);
        // Neighbours mostly remember the same.
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

    /// A stamp of a byte against the one of this access.
    fn check(
        &mut self,
        actor: &Actor<'_>,
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
        let who = self.whos[before.who as usize];
        let atomic = before.atomic > 0 && this.atomic > 0;
        if atomic && (before.atomic.min(this.atomic) > 1 || self.node(who) == Some(actor.node)) {
            return Ok(());
        }
        if self.before(who, actor) {
            self.ordered = (then, now);
            return Ok(());
        }
        Err(self.conflict(before, wrote))
    }

    fn conflict(&self, stamp: Stamp, wrote: bool) -> Conflict {
        let who = self.whos[stamp.who as usize];
        let text = |instance: u32, thread: Option<u32>| {
            let (_, [x, y, z], threads) = self.instances[instance as usize];
            let thread = thread.map(|t| {
                let [x, y, z] = super::turns::index(threads, t);
                format!(", thread {x},{y},{z}")
            });
            format!("block {x},{y},{z}{}", thread.unwrap_or_default())
        };
        let (node, who) = match who {
            Who::Thread {
                instance, thread, ..
            } => (
                self.instances[instance as usize].0,
                text(instance, Some(thread)),
            ),
            Who::Warp { instance, .. } | Who::Block { instance, .. } => {
                (self.instances[instance as usize].0, text(instance, None))
            }
            Who::Node { node } => (node as usize, String::new()),
            Who::Both { second, .. } => match self.stamp(second) {
                Some(second) => return self.conflict(second, wrote),
                None => (0, String::new()),
            },
        };
        let pc = stamp.pc;
        Conflict {
            node,
            pc,
            who,
            wrote,
        }
    }
}
