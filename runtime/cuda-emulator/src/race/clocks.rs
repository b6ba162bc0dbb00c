//! The clocks of a running block, which record synchronisation between threads.

use super::happens_before::{BlockProgress, HappensBefore};

const PLACES: usize = 8;
pub(super) const NONE: u32 = 0;

#[derive(Clone, Debug, Default)]
pub(super) struct ThreadClock {
    /// A counter that advances when the thread publishes its accesses.
    pub(super) clock: u32,
    /// The origin of stamps at the current clock.
    pub(super) origin: u32,
    pub(super) places: [(usize, u32); PLACES],
    /// The accesses acquired from flags since the last barrier.
    pub(super) acquired: Option<Box<HappensBefore>>,
    /// The accesses seen through relaxed flag loads. The next fence acquires them.
    pub(super) pending: Option<Box<HappensBefore>>,
    /// The accesses that a store after the last fence publishes, and the scope of the fence.
    pub(super) fenced: Option<Box<(HappensBefore, u32)>>,
}

impl ThreadClock {
    pub(super) fn advance(&mut self) {
        self.clock += 1;
        self.origin = NONE;
        self.places = [(0, NONE); PLACES];
    }

    pub(super) fn stamp_slot(&mut self, pc: usize) -> &mut (usize, u32) {
        &mut self.places[(pc >> 2) % PLACES]
    }
}

#[derive(Debug, Default)]
pub(crate) struct BlockClocks {
    pub(super) instance: u32,
    pub(super) epoch: u32,
    /// The accesses that happened before all threads of the block.
    pub(super) known: HappensBefore,
    pub(super) threads: Vec<ThreadClock>,
    /// For each warp and lane, the last known clocks of the warp's 32 lanes.
    pub(super) lanes: Vec<[[u32; 32]; 32]>,
    /// True if a thread has acquired or fenced since the last barrier.
    pub(super) busy: bool,
}

impl BlockClocks {
    pub(super) fn begin(&mut self, instance: u32, threads: usize) {
        self.instance = instance;
        self.epoch = 0;
        self.known = HappensBefore::default();
        let new = ThreadClock {
            clock: 1,
            ..ThreadClock::default()
        };
        self.threads.clear();
        self.threads.resize(threads, new);
        self.lanes.clear();
        self.lanes.resize(threads.div_ceil(32), [[0; 32]; 32]);
        self.busy = false;
    }

    pub(crate) fn barrier(&mut self) {
        self.epoch += 1;
        for t in &mut self.threads {
            t.advance();
        }
        if std::mem::take(&mut self.busy) {
            for t in &mut self.threads {
                if let Some(acquired) = t.acquired.take() {
                    self.known.join(&acquired);
                }
            }
        }
    }

    pub(crate) fn warp(&mut self, warp: usize, mask: u32) {
        let members = || (0..32).filter(|l| mask >> l & 1 == 1);
        let lanes = &mut self.lanes[warp];
        let threads = &mut self.threads[warp * 32..];
        let mut joined = [0; 32];
        let mut acquired: Option<Box<HappensBefore>> = None;
        for l in members() {
            lanes[l][l] = threads[l].clock;
            for (j, known) in joined.iter_mut().zip(&lanes[l]) {
                *j = (*known).max(*j);
            }
            if let Some(known) = &threads[l].acquired {
                acquired.get_or_insert_default().join(known);
            }
        }
        for l in members() {
            lanes[l] = joined;
            threads[l].advance();
            if acquired.is_some() {
                threads[l].acquired.clone_from(&acquired);
            }
        }
    }

    /// Returns the accesses before the current point of the thread, including its own.
    pub(super) fn snapshot(&self, thread: usize) -> HappensBefore {
        let mut known = self.known.clone();
        if let Some(acquired) = &self.threads[thread].acquired {
            known.join(acquired);
        }
        let warp = thread / 32;
        let lanes = self.lanes[warp][thread % 32].iter().enumerate();
        let lanes = lanes.filter(|(_, clock)| **clock > 0);
        let mut threads: std::collections::BTreeMap<u32, u32> = lanes
            .map(|(l, &clock)| ((warp * 32 + l) as u32, clock))
            .collect();
        threads.insert(thread as u32, self.threads[thread].clock);
        let epoch = self.epoch;
        known.join(&HappensBefore {
            blocks: [(self.instance, BlockProgress { epoch, threads })].into(),
            ..HappensBefore::default()
        });
        known
    }

    pub(super) fn acquire(&mut self, thread: usize, known: &HappensBefore) {
        if !known.is_empty() {
            self.busy = true;
            let acquired = &mut self.threads[thread].acquired;
            acquired.get_or_insert_default().join(known);
        }
    }
}
