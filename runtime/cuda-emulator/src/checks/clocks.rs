//! The clocks of a block that runs: which of its threads know of which others.

use super::known::{Known, Seen};

/// Stamps of the last places in the code at which a thread made an access.
const PLACES: usize = 8;
/// No stamp and no context yet.
pub(super) const NONE: u32 = 0;

/// A thread's clock and what it knows.
#[derive(Clone, Debug, Default)]
pub(super) struct ThreadClock {
    /// Grows whenever the thread makes known what it did.
    pub(super) clock: u32,
    /// Who it is in stamps until then.
    pub(super) who: u32,
    /// Stamps by places.
    pub(super) places: [(usize, u32); PLACES],
    /// What it learnt from flags since the last barrier.
    pub(super) learnt: Option<Box<Known>>,
    /// What it read in flags and will know after a fence, by scope.
    pub(super) pending: Option<Box<Known>>,
    /// What a store after its last fence makes known, and to whom.
    pub(super) fenced: Option<Box<(Known, u32)>>,
}

impl ThreadClock {
    /// Forgets who it was.
    pub(super) fn advance(&mut self) {
        self.clock += 1;
        self.who = NONE;
        self.places = [(0, NONE); PLACES];
    }

    /// Where the stamp of a place is kept.
    pub(super) fn place(&mut self, pc: usize) -> &mut (usize, u32) {
        &mut self.places[(pc >> 2) % PLACES]
    }
}

/// The clocks of a block.
#[derive(Debug, Default)]
pub(crate) struct BlockClocks {
    /// Its number in the launch.
    pub(super) instance: u32,
    /// The barriers that it has passed.
    pub(super) epoch: u32,
    /// What all its threads know.
    pub(super) known: Known,
    pub(super) threads: Vec<ThreadClock>,
    /// Per warp and lane, the clocks of all lanes that it knows.
    pub(super) lanes: Vec<[[u32; 32]; 32]>,
    /// Whether a thread has learnt or fenced anything since the last barrier.
    pub(super) busy: bool,
}

impl BlockClocks {
    /// The clocks of a block of so many threads at its begin.
    pub(super) fn begin(&mut self, instance: u32, threads: usize) {
        self.instance = instance;
        self.epoch = 0;
        self.known = Known::default();
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

    /// All threads have passed a barrier.
    pub(crate) fn barrier(&mut self) {
        self.epoch += 1;
        for t in &mut self.threads {
            t.advance();
        }
        if std::mem::take(&mut self.busy) {
            for t in &mut self.threads {
                if let Some(learnt) = t.learnt.take() {
                    self.known.join(&learnt);
                }
            }
        }
    }

    /// The lanes of a mask have met in a `__syncwarp`.
    pub(crate) fn warp(&mut self, warp: usize, mask: u32) {
        let members = || (0..32).filter(|l| mask >> l & 1 == 1);
        let lanes = &mut self.lanes[warp];
        let threads = &mut self.threads[warp * 32..];
        let mut joined = [0; 32];
        let mut learnt: Option<Box<Known>> = None;
        for l in members() {
            lanes[l][l] = threads[l].clock;
            for (j, known) in joined.iter_mut().zip(&lanes[l]) {
                *j = (*known).max(*j);
            }
            if let Some(known) = &threads[l].learnt {
                learnt.get_or_insert_default().join(known);
            }
        }
        for l in members() {
            lanes[l] = joined;
            threads[l].advance();
            if learnt.is_some() {
                threads[l].learnt.clone_from(&learnt);
            }
        }
    }

    /// What a thread knows now, its own accesses included.
    pub(super) fn snapshot(&self, thread: usize) -> Known {
        let mut known = self.known.clone();
        if let Some(learnt) = &self.threads[thread].learnt {
            known.join(learnt);
        }
        let warp = thread / 32;
        let lanes = self.lanes[warp][thread % 32].iter().enumerate();
        let lanes = lanes.filter(|(_, clock)| **clock > 0);
        let mut threads: std::collections::BTreeMap<u32, u32> = lanes
            .map(|(l, &clock)| ((warp * 32 + l) as u32, clock))
            .collect();
        threads.insert(thread as u32, self.threads[thread].clock);
        let epoch = self.epoch;
        known.join(&Known {
            blocks: [(self.instance, Seen { epoch, threads })].into(),
            ..Known::default()
        });
        known
    }

    /// Adds to what a thread knows.
    pub(super) fn learn(&mut self, thread: usize, known: &Known) {
        if !known.is_empty() {
            self.busy = true;
            let learnt = &mut self.threads[thread].learnt;
            learnt.get_or_insert_default().join(known);
        }
    }
}
