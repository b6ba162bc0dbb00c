//! A thread's part of a run: division of work, and waiting for other workers.

use std::cell::Cell;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::bell::Bell;
use crate::error::KernelError;
use crate::pieces::{Pieces, Share};

/// Minimum items per worker for work stealing.
const FEW: usize = 4;
/// Pieces per worker in a division of items.
const PIECES: usize = 8;

/// A value in its own cache lines.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Apart<T>(pub(crate) T);

/// The workers of a device.
#[derive(Debug)]
pub(crate) struct Group {
    device: usize,
    arrived: Apart<AtomicUsize>,
    round: Apart<AtomicUsize>,
    /// Shares for work stealing, one per worker.
    shares: Vec<Share>,
}

impl Group {
    const fn empty() -> Group {
        Group {
            device: 0,
            arrived: Apart(AtomicUsize::new(0)),
            round: Apart(AtomicUsize::new(0)),
            shares: Vec::new(),
        }
    }

    pub(crate) fn new(device: usize, workers: usize) -> Group {
        Group {
            device,
            shares: (0..workers).map(|_| Share::default()).collect(),
            ..Group::empty()
        }
    }

    /// Prepares a run, while no worker runs.
    pub(crate) fn reset(&self) {
        self.arrived.0.store(0, Ordering::Relaxed);
        self.shares.iter().for_each(Share::reset);
    }
}

static NOBODY: Group = Group::empty();
static NEVER: AtomicBool = AtomicBool::new(false);
static NO_BELL: Bell = Bell::new();

/// The workers of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meeting<'a> {
    pub(crate) stop: &'a AtomicBool,
    pub(crate) bell: &'a Bell,
    /// Checks before a waiting worker sleeps.
    pub(crate) spins: u32,
}

/// A thread's part of a run.
#[derive(Debug)]
pub struct Worker<'a> {
    group: &'a Group,
    index: usize,
    number: usize,
    count: usize,
    meeting: Meeting<'a>,
    /// Number of [`Self::pieces`] calls in this run.
    divisions: Cell<u32>,
    waited: Cell<Duration>,
}

impl<'a> Worker<'a> {
    /// Returns the calling thread as a worker without a team.
    pub const fn alone() -> Worker<'static> {
        Worker {
            group: &NOBODY,
            index: 0,
            number: 0,
            count: 1,
            meeting: Meeting {
                stop: &NEVER,
                bell: &NO_BELL,
                spins: 0,
            },
            divisions: Cell::new(0),
            waited: Cell::new(Duration::ZERO),
        }
    }

    /// Returns worker `index` of the `count` workers of a group, worker `number` of the team.
    pub(crate) const fn new(
        group: &'a Group,
        (index, count, number): (usize, usize, usize),
        meeting: Meeting<'a>,
    ) -> Worker<'a> {
        Worker {
            group,
            index,
            number,
            count,
            meeting,
            divisions: Cell::new(0),
            waited: Cell::new(Duration::ZERO),
        }
    }
}

impl Worker<'_> {
    /// Returns the worker's device.
    pub const fn device(&self) -> usize {
        self.group.device
    }

    /// Returns the worker's index on its device.
    pub const fn index(&self) -> usize {
        self.index
    }

    /// Returns the worker's index in the team.
    pub const fn number(&self) -> usize {
        self.number
    }

    /// Returns the device's number of workers in this run.
    pub const fn count(&self) -> usize {
        self.count
    }

    /// Returns the time asleep in this run.
    pub(crate) const fn waited(&self) -> Duration {
        self.waited.get()
    }

    /// Returns the worker's share of `n` items, as even as possible.
    pub const fn share(&self, n: usize) -> Range<usize> {
        let (i, count) = (self.index, self.count);
        n * i / count..n * (i + 1) / count
    }

    /// Divides `n` independent items among all workers: by work stealing if there are many, evenly otherwise. Every
    /// worker of the device makes the same calls in the same order.
    pub fn items(&self, n: usize) -> impl Iterator<Item = usize> + use<'_> {
        let stolen = self.count > 1 && n >= FEW * self.count;
        let share = if stolen { 0..0 } else { self.share(n) };
        let pieces = stolen.then(|| self.pieces(n, n.div_ceil(PIECES * self.count)));
        share.chain(pieces.into_iter().flatten().flatten())
    }

    /// Divides `n` items among all workers by work stealing, about `grain` at a time. Every worker of the device
    /// makes the same calls in the same order.
    pub fn pieces(&self, n: usize, grain: usize) -> impl Iterator<Item = Range<usize>> + use<'_> {
        let alone = self.count == 1;
        let shares = if alone { 0 } else { self.count };
        let shares = &self.group.shares[..shares];
        self.divisions.set(self.divisions.get() + 1);
        let whole = (alone && n > 0).then_some(0..n);
        let pieces = Pieces::new(shares, self.index, self.divisions.get(), n, grain);
        whole.into_iter().chain(pieces)
    }

    /// Waits for all workers of the device. The writes before the barrier are then visible.
    ///
    /// # Errors
    /// Returns [`KernelError::Stopped`] if a worker of the team has failed.
    pub fn barrier(&self) -> Result<(), KernelError> {
        let group = self.group;
        if self.count == 1 {
            return Ok(());
        }
        let round = group.round.0.load(Ordering::Relaxed);
        if group.arrived.0.fetch_add(1, Ordering::AcqRel) + 1 == self.count {
            group.arrived.0.store(0, Ordering::Relaxed);
            let next = round.wrapping_add(1);
            group.round.0.store(next, Ordering::Release);
            self.notify();
            return Ok(());
        }
        self.wait_for(|| group.round.0.load(Ordering::Acquire) != round)
    }

    /// Waits until `done` returns true. Another worker changes the result of `done`, then calls [`Worker::notify`].
    ///
    /// # Errors
    /// Returns [`KernelError::Stopped`] if a worker of the team has failed.
    pub fn wait_for(&self, mut done: impl FnMut() -> bool) -> Result<(), KernelError> {
        let Meeting { stop, bell, spins } = self.meeting;
        let mut reached = false;
        let slept = bell.wait(spins, || {
            reached = done();
            reached || stop.load(Ordering::Acquire)
        });
        self.waited.set(self.waited.get() + slept);
        if reached {
            Ok(())
        } else {
            Err(KernelError::Stopped)
        }
    }

    /// Wakes the workers that wait for a change by this worker.
    pub fn notify(&self) {
        self.meeting.bell.ring();
    }
}
