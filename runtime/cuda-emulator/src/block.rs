use super::abi::{BlockHead, RawShared, RawSite, Slot};
use super::race::{BlockClocks, ShadowCell};

/// Bytes between shared-memory declarations, to detect overruns.
const GAP: usize = 64;

/// The limit of static shared memory per kernel in bytes, as on real devices.
pub(super) const MAX_DECLARED_SHARED: usize = 48 << 10;

#[derive(Clone, Copy)]
pub(super) struct Fiber {
    pub(super) stack: *mut u8,
    pub(super) sp: *mut u8,
    pub(super) site: Option<RawSite>,
    /// The address and value of the last flag that the thread loaded.
    pub(super) flag: (usize, u64),
    pub(super) ended: bool,
}

impl Fiber {
    const NEW: Fiber = Fiber {
        stack: std::ptr::null_mut(),
        sp: std::ptr::null_mut(),
        site: None,
        flag: (0, 0),
        ended: false,
    };
}

pub(super) struct Collective {
    pub(super) mask: u32,
    pub(super) arrived: u32,
    pub(super) generation: usize,
    pub(super) site: Option<RawSite>,
    pub(super) slots: Box<[[Slot; 32]; 2]>,
}

#[derive(Default)]
pub(super) struct Warp {
    pub(super) new: u32,
    pub(super) ready: u32,
    pub(super) spinning: u32,
    pub(super) at_barrier: u32,
    pub(super) alive: u32,
    pub(super) collectives: Vec<Collective>,
}

impl Warp {
    pub(super) fn runnable(&self) -> u32 {
        self.new | self.ready
    }

    pub(super) fn collective(&mut self, mask: u32) -> usize {
        if let Some(i) = self.collectives.iter().position(|c| c.mask == mask) {
            return i;
        }
        self.collectives.push(Collective {
            mask,
            arrived: 0,
            generation: 0,
            site: None,
            slots: Box::new([[Slot([0; super::abi::SLOT]); 32]; 2]),
        });
        self.collectives.len() - 1
    }
}

/// A pending copy: target, source, program counter.
pub(super) type PendingCopy = (usize, usize, usize);

/// A thread's pending asynchronous copies: closed groups, oldest first, and the open group.
#[derive(Default)]
pub(super) struct AsyncCopies {
    pub(super) closed: std::collections::VecDeque<Vec<PendingCopy>>,
    pub(super) open: Vec<PendingCopy>,
}

/// A running block. Later blocks reuse the allocation.
pub(super) struct Block {
    pub(super) head: BlockHead,
    pub(super) node: usize,
    /// The clocks of the threads; `None` in the unchecked build.
    pub(super) clocks: Option<Box<BlockClocks>>,
    pub(super) alive: u32,
    pub(super) arrived: u32,
    /// The sums of the threads' barrier values, in the current and the previous generation.
    pub(super) brought: [u32; 2],
    pub(super) generation: usize,
    pub(super) barrier: Option<RawSite>,
    pub(super) triggered: bool,
    /// The number of threads that wait for programmatic predecessors.
    pub(super) waiting: u32,
    pub(super) warps: Vec<Warp>,
    pub(super) fibers: Vec<Fiber>,
    pub(super) copies: Vec<AsyncCopies>,
    shared: Vec<u128>,
    cells: Vec<ShadowCell>,
    used: usize,
    declared: Vec<(*const RawShared, usize)>,
}

impl Block {
    pub(super) fn new() -> Box<Block> {
        Box::new(Block {
            head: BlockHead {
                index: [0; 3],
                threads: [0; 3],
                blocks: [0; 3],
                dynamic_bytes: 0,
                dynamic: std::ptr::null_mut(),
            },
            node: 0,
            clocks: None,
            alive: 0,
            arrived: 0,
            brought: [0; 2],
            generation: 0,
            barrier: None,
            triggered: false,
            waiting: 0,
            warps: Vec::new(),
            fibers: Vec::new(),
            copies: Vec::new(),
            shared: Vec::new(),
            cells: Vec::new(),
            used: 0,
            declared: Vec::new(),
        })
    }

    /// Starts a block without threads. `most` is the maximum shared memory in bytes.
    pub(super) fn begin(&mut self, node: usize, head: BlockHead, most: usize) {
        let threads = head.threads.iter().product::<u32>();
        self.head = head;
        self.node = node;
        (self.alive, self.arrived, self.generation) = (threads, 0, 0);
        self.brought = [0; 2];
        (self.barrier, self.triggered, self.waiting) = (None, false, 0);
        self.fibers.clear();
        self.fibers.resize(threads as usize, Fiber::NEW);
        for copies in &mut self.copies {
            copies.closed.clear();
            copies.open.clear();
        }
        let warps = threads.div_ceil(32) as usize;
        if self.warps.len() < warps {
            self.warps.resize_with(warps, Warp::default);
        }
        self.warps.truncate(warps);
        for (w, warp) in self.warps.iter_mut().enumerate() {
            let lanes = (threads - 32 * w as u32).min(32);
            let all = u32::MAX >> (32 - lanes);
            (warp.new, warp.alive) = (all, all);
            (warp.ready, warp.spinning, warp.at_barrier) = (0, 0, 0);
            for c in &mut warp.collectives {
                c.arrived = 0;
            }
        }
        let room = (2 * most + 64 * GAP).div_ceil(16);
        if self.shared.len() < room {
            self.shared.resize(room, 0);
        }
        self.declared.clear();
        self.used = 0;
        let dynamic = self.head.dynamic_bytes as usize;
        self.head.dynamic = self.take(dynamic);
    }

    fn take(&mut self, bytes: usize) -> *mut u8 {
        let from = self.used;
        self.used = (from + bytes).next_multiple_of(16) + GAP;
        let base = self.shared.as_mut_ptr().cast::<u8>();
        let at = base.wrapping_add(from);
        // SAFETY: the caller has checked that the bytes fit.
        unsafe { at.write_bytes(0xff, bytes) };
        if self.clocks.is_some() {
            if self.cells.len() < self.used {
                self.cells.resize(self.used, ShadowCell::default());
            }
            self.cells[from..from + bytes].fill(ShadowCell::default());
        }
        at
    }

    /// Returns the memory of a declaration; `None` if shared memory is exhausted.
    pub(super) fn shared(&mut self, site: *const RawShared) -> Option<*mut u8> {
        let base = self.shared.as_mut_ptr().cast::<u8>();
        if let Some((_, at)) = self.declared.iter().find(|(s, _)| *s == site) {
            return Some(base.wrapping_add(*at));
        }
        // SAFETY: `site` points to a declaration of the shim, which lives as long as the module.
        let bytes = unsafe { (*site).bytes } as usize;
        if self.used + bytes + 2 * GAP > self.shared.len() * 16 {
            return None;
        }
        let at = self.take(bytes);
        self.declared.push((site, at as usize - base as usize));
        Some(at)
    }

    pub(super) fn shared_bytes(&self) -> usize {
        // SAFETY: as above.
        let of = |site: *const RawShared| unsafe { (*site).bytes } as usize;
        let declared: usize = self.declared.iter().map(|(s, _)| of(*s)).sum();
        self.head.dynamic_bytes as usize + declared
    }

    pub(super) fn is_shared(&self, address: usize) -> bool {
        let base = self.shared.as_ptr() as usize;
        (base..base + self.shared.len() * 16).contains(&address)
    }

    /// Returns the shadow cells of a shared-memory range, or an error text.
    pub(super) fn shared_cells(
        &mut self,
        address: usize,
        bytes: usize,
    ) -> Result<&mut [ShadowCell], String> {
        let from = address - self.shared.as_ptr() as usize;
        let dynamic = self.head.dynamic_bytes as usize;
        if from + bytes <= dynamic {
            return Ok(&mut self.cells[from..from + bytes]);
        }
        // SAFETY: declarations of the shim, which live as long as the module.
        let ranges = self
            .declared
            .iter()
            .map(|&(site, at)| unsafe { (&*site, at) });
        let near = ranges
            .filter(|(_, at)| *at <= from)
            .max_by_key(|(_, at)| *at);
        let (name, at, size) = match near {
            Some((site, at)) if from + bytes <= at + site.bytes as usize => {
                return Ok(&mut self.cells[from..from + bytes]);
            }
            Some((site, at)) => (site.name(), at, site.bytes as usize),
            None => ("dynamic shared memory".to_owned(), 0, dynamic),
        };
        Err(format!(
            "{bytes} bytes at byte {} of {name}, which has {size}",
            from - at
        ))
    }

    pub(super) fn release(&mut self) -> bool {
        if self.arrived == 0 || self.arrived < self.alive {
            return false;
        }
        self.arrived = 0;
        self.barrier = None;
        self.generation += 1;
        self.brought[self.generation & 1] = 0;
        for warp in &mut self.warps {
            warp.ready |= warp.at_barrier;
            warp.at_barrier = 0;
        }
        true
    }

    pub(super) fn describe_waits(&self) -> String {
        let mut places: Vec<(String, u32, u32)> = Vec::new();
        for (i, fiber) in self.fibers.iter().enumerate() {
            let Some(site) = fiber.site.filter(|_| !fiber.ended) else {
                continue;
            };
            let i = i as u32;
            let at = format!("in {} at {}", site.what(), site.at());
            match places.last_mut() {
                Some((last, _, to)) if *last == at && *to + 1 == i => *to = i,
                _ => places.push((at, i, i)),
            }
        }
        let more = places.len().saturating_sub(4);
        let mut told: Vec<String> = places
            .iter()
            .take(4)
            .map(|(at, from, to)| match from == to {
                true => format!("thread {from} waits {at}"),
                false => format!("threads {from} to {to} wait {at}"),
            })
            .collect();
        if more > 0 {
            told.push(format!("and {more} more"));
        }
        told.join("; ")
    }
}
