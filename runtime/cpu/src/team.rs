//! Threads that run launches together. Between runs, threads spin for a while, then park.
//!
//! On a busy machine, a thread that yields loses a time slice, and all others wait for it. Only threads without their
//! own core yield.

use std::cell::{Cell, UnsafeCell};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle, Thread};
use std::time::Duration;

use crate::error::{KernelError, TeamError};
use crate::pieces::{Pieces, Share};

/// Wait iterations before a thread yields.
const SPINS: u32 = 1 << 15;
/// Wait iterations if there are more threads than cores.
const SPINS_CROWDED: u32 = 1 << 8;
/// The sleep after spinning without success.
const NAP: Duration = Duration::from_micros(50);
/// Iterations before an idle thread parks.
const IDLE_TURNS: u32 = 1 << 14;

#[derive(Debug, Default)]
#[repr(align(128))]
struct Apart<T>(T);

/// Waits until `done` returns true: spins, then yields. `crowded` is true if other threads may need this core.
fn wait(crowded: bool, mut done: impl FnMut() -> bool) {
    let spins = if crowded { SPINS_CROWDED } else { SPINS };
    let mut turns = 0;
    while !done() {
        if turns < spins {
            turns += 1;
            std::hint::spin_loop();
        } else if crowded {
            thread::yield_now();
        } else {
            thread::sleep(NAP);
        }
    }
}

#[derive(Debug)]
struct Group {
    device: usize,
    count: usize,
    arrived: Apart<AtomicUsize>,
    round: Apart<AtomicUsize>,
    /// Shares for work stealing, empty for one worker.
    shares: Vec<Share>,
}

impl Group {
    const fn new(device: usize, count: usize, shares: Vec<Share>) -> Group {
        Group {
            device,
            count,
            arrived: Apart(AtomicUsize::new(0)),
            round: Apart(AtomicUsize::new(0)),
            shares,
        }
    }
}

static NOBODY: Group = Group::new(0, 1, Vec::new());
static NEVER: AtomicBool = AtomicBool::new(false);

/// A thread's part of a run.
#[derive(Debug)]
pub struct Worker<'a> {
    group: &'a Group,
    index: usize,
    number: usize,
    stop: &'a AtomicBool,
    crowded: bool,
    /// Number of [`Self::pieces`] calls in this run.
    divisions: Cell<u32>,
}

impl Worker<'_> {
    /// Returns the calling thread as a worker without a team.
    pub const fn alone() -> Worker<'static> {
        Worker {
            group: &NOBODY,
            index: 0,
            number: 0,
            stop: &NEVER,
            crowded: false,
            divisions: Cell::new(0),
        }
    }

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

    /// Returns the device's number of workers.
    pub const fn count(&self) -> usize {
        self.group.count
    }

    /// Returns the worker's share of `n` items, as even as possible.
    pub const fn share(&self, n: usize) -> Range<usize> {
        let (i, count) = (self.index, self.group.count);
        n * i / count..n * (i + 1) / count
    }

    /// Divides `n` items among all workers by work stealing, about `grain` at a time. Every worker of the device
    /// makes the same calls in the same order.
    pub fn pieces(&self, n: usize, grain: usize) -> impl Iterator<Item = Range<usize>> + use<'_> {
        let shares = &self.group.shares[..];
        self.divisions.set(self.divisions.get() + 1);
        let whole = (shares.is_empty() && n > 0).then_some(0..n);
        let pieces = Pieces::new(shares, self.index, self.divisions.get(), n, grain);
        whole.into_iter().chain(pieces)
    }

    /// Waits for all workers of the device. The writes before the barrier are then visible.
    ///
    /// # Errors
    /// Returns [`KernelError::Stopped`] if a worker of the team has failed.
    pub fn barrier(&self) -> Result<(), KernelError> {
        let group = self.group;
        if group.count == 1 {
            return Ok(());
        }
        let round = group.round.0.load(Ordering::Relaxed);
        if group.arrived.0.fetch_add(1, Ordering::AcqRel) + 1 == group.count {
            group.arrived.0.store(0, Ordering::Relaxed);
            group
                .round
                .0
                .store(round.wrapping_add(1), Ordering::Release);
            return Ok(());
        }
        self.wait_for(|| group.round.0.load(Ordering::Acquire) != round)
    }

    /// Waits until `done` returns true. Other workers of the team change the result of `done`.
    ///
    /// # Errors
    /// Returns [`KernelError::Stopped`] if a worker of the team has failed.
    pub fn wait_for(&self, mut done: impl FnMut() -> bool) -> Result<(), KernelError> {
        let mut reached = false;
        wait(self.crowded, || {
            reached = done();
            reached || self.stop.load(Ordering::Acquire)
        });
        if reached {
            Ok(())
        } else {
            Err(KernelError::Stopped)
        }
    }
}

type Job<'a> = dyn Fn(&Worker<'_>) -> Result<(), KernelError> + Sync + 'a;

struct Shared {
    groups: Box<[Group]>,
    seats: Box<[(usize, usize)]>,
    /// True if the thread sleeps or will sleep, per worker except the first.
    parked: Box<[Apart<AtomicBool>]>,
    /// Number of started runs.
    epoch: Apart<AtomicUsize>,
    /// Threads that have not finished the run.
    pending: Apart<AtomicUsize>,
    /// The job of run `epoch`.
    job: UnsafeCell<Option<*const Job<'static>>>,
    stop: AtomicBool,
    /// The failed worker with the lowest index, and its error.
    failure: Mutex<Option<(usize, KernelError)>>,
    quit: AtomicBool,
    crowded: bool,
}

// SAFETY: the team's owner writes `job` while no thread runs (`pending` is 0) and publishes it by `epoch`. Threads
// read `job` after they have seen this epoch and before they decrement `pending`. The job itself is `Sync`.
#[allow(unsafe_code)]
unsafe impl Send for Shared {}
// SAFETY: as above.
#[allow(unsafe_code)]
unsafe impl Sync for Shared {}

impl Shared {
    fn failed(&self, worker: usize, error: KernelError) {
        let mut first = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        let rank = |worker: usize, e: KernelError| (e == KernelError::Stopped, worker);
        if first.is_none_or(|(w, e)| rank(worker, error) < rank(w, e)) {
            *first = Some((worker, error));
        }
        drop(first);
        self.stop.store(true, Ordering::Release);
    }

    fn take_part(&self, number: usize, job: &Job<'_>) {
        let (group, index) = self.seats[number];
        let worker = Worker {
            group: &self.groups[group],
            index,
            number,
            stop: &self.stop,
            crowded: self.crowded,
            divisions: Cell::new(0),
        };
        match catch_unwind(AssertUnwindSafe(|| job(&worker))) {
            Ok(Ok(())) => {}
            Ok(Err(e)) => self.failed(number, e),
            Err(_) => self.failed(number, KernelError::Panicked),
        }
    }

    fn serve(&self, number: usize) {
        let mut seen = 0;
        loop {
            self.idle(number, seen);
            seen = self.epoch.0.load(Ordering::Acquire);
            if self.quit.load(Ordering::Acquire) {
                return;
            }
            // SAFETY: the epoch increased after the job was written, and the owner waits for `pending` before the job
            // ends or changes.
            #[allow(unsafe_code)]
            let job = unsafe { (*self.job.get()).map(|job| &*job) };
            if let Some(job) = job {
                self.take_part(number, job);
            }
            self.pending.0.fetch_sub(1, Ordering::Release);
        }
    }

    /// Waits for a run after run `seen`.
    fn idle(&self, number: usize, seen: usize) {
        let begun = || self.epoch.0.load(Ordering::SeqCst) != seen;
        for _ in 0..IDLE_TURNS {
            if begun() {
                return;
            }
            std::hint::spin_loop();
        }
        let parked = &self.parked[number].0;
        while !begun() {
            parked.store(true, Ordering::SeqCst);
            // If the epoch increases after this store, the thread that increases it sees the flag. Otherwise, the
            // next check sees the new epoch.
            if !begun() {
                thread::park();
            }
            parked.store(false, Ordering::SeqCst);
        }
    }
}

/// Threads in groups, one per device. The caller of [`Team::run`] is the first worker of the first group.
#[derive(Debug)]
pub struct Team {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    handles: Vec<Thread>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared")
            .field("groups", &self.groups)
            .finish_non_exhaustive()
    }
}

impl Team {
    /// Creates a team for one device.
    ///
    /// # Errors
    /// Returns [`TeamError`] if `threads` is 0 or a thread cannot start.
    pub fn new(threads: usize) -> Result<Team, TeamError> {
        Team::of_devices(&[threads])
    }

    /// Creates a team with `threads[d]` workers for device `d`.
    ///
    /// # Errors
    /// Returns [`TeamError`] if a device has no worker or a thread cannot start.
    pub fn of_devices(threads: &[usize]) -> Result<Team, TeamError> {
        if threads.is_empty() || threads.contains(&0) {
            return Err(TeamError::Empty);
        }
        let groups = threads.iter().enumerate();
        let seats: Box<[(usize, usize)]> = groups
            .clone()
            .flat_map(|(device, &count)| (0..count).map(move |index| (device, index)))
            .collect();
        let workers = seats.len();
        let shared = Arc::new(Shared {
            groups: groups
                .map(|(device, &count)| {
                    let shares = if count == 1 { 0 } else { count };
                    let shares = (0..shares).map(|_| Share::default()).collect();
                    Group::new(device, count, shares)
                })
                .collect(),
            seats,
            parked: (0..workers).map(|_| Apart::default()).collect(),
            epoch: Apart::default(),
            pending: Apart::default(),
            job: UnsafeCell::new(None),
            stop: AtomicBool::new(false),
            failure: Mutex::new(None),
            quit: AtomicBool::new(false),
            crowded: thread::available_parallelism().is_ok_and(|cores| workers > cores.get()),
        });
        let mut team = Team {
            shared,
            threads: Vec::with_capacity(workers - 1),
            handles: Vec::with_capacity(workers - 1),
        };
        for number in 1..workers {
            let shared = Arc::clone(&team.shared);
            let thread = thread::Builder::new()
                .name(format!("tpc-cpu-{number}"))
                .spawn(move || shared.serve(number))?;
            team.handles.push(thread.thread().clone());
            team.threads.push(thread);
        }
        Ok(team)
    }

    /// Returns the total number of workers.
    pub fn workers(&self) -> usize {
        self.shared.seats.len()
    }

    /// Runs `job` on every worker and waits for all workers. Does not allocate.
    ///
    /// # Errors
    /// Returns the error of the first worker whose job failed or panicked. Workers that wait for this worker stop.
    pub fn run(
        &mut self,
        job: impl Fn(&Worker<'_>) -> Result<(), KernelError> + Sync,
    ) -> Result<(), KernelError> {
        let shared = &*self.shared;
        let job: &Job<'_> = &job;
        shared.stop.store(false, Ordering::Relaxed);
        for group in &shared.groups {
            group.arrived.0.store(0, Ordering::Relaxed);
            group.shares.iter().for_each(Share::reset);
        }
        // SAFETY: only the lifetime changes. Threads use the job after they see the epoch below and until they
        // decrement `pending`, and this function waits for `pending`. No thread reads the cell now, because `pending`
        // is 0.
        #[allow(unsafe_code)]
        unsafe {
            let job: *const Job<'_> = job;
            *shared.job.get() = Some(std::mem::transmute::<*const Job<'_>, *const Job<'static>>(
                job,
            ));
        }
        shared
            .pending
            .0
            .store(self.threads.len(), Ordering::Relaxed);
        self.wake();
        shared.take_part(0, job);
        wait(shared.crowded, || {
            shared.pending.0.load(Ordering::Acquire) == 0
        });
        let failure = shared
            .failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        failure.map_or(Ok(()), |(_, error)| Err(error))
    }

    fn wake(&self) {
        self.shared.epoch.0.fetch_add(1, Ordering::SeqCst);
        for (parked, thread) in self.shared.parked[1..].iter().zip(&self.handles) {
            if parked.0.load(Ordering::SeqCst) {
                thread.unpark();
            }
        }
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        self.shared.quit.store(true, Ordering::Release);
        self.wake();
        for thread in self.threads.drain(..) {
            // Jobs catch panics, so every thread returns.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meet(worker: &Worker<'_>) -> Result<(), KernelError> {
        worker.barrier()
    }

    #[test]
    fn every_worker_runs_once_and_shares_cover_everything() {
        for threads in 1..5 {
            let mut team = Team::new(threads).expect("threads");
            for n in [0, 1, 7, 100] {
                let done: Vec<AtomicUsize> = (0..n).map(|_| AtomicUsize::new(0)).collect();
                team.run(|w| {
                    for i in w.share(n) {
                        done[i].fetch_add(1, Ordering::Relaxed);
                    }
                    Ok(())
                })
                .expect("no failure");
                assert!(done.iter().all(|d| d.load(Ordering::Relaxed) == 1));
            }
        }
    }

    #[test]
    fn what_is_written_before_a_barrier_is_read_after_it() {
        let mut team = Team::of_devices(&[3, 2]).expect("threads");
        let slots: Vec<AtomicUsize> = (0..5).map(|_| AtomicUsize::new(0)).collect();
        team.run(|w| {
            let first = w.device() * 3;
            for round in 1..200 {
                slots[first + w.index()].store(round, Ordering::Relaxed);
                w.barrier()?;
                for slot in &slots[first..first + w.count()] {
                    assert_eq!(slot.load(Ordering::Relaxed), round);
                }
                w.barrier()?;
            }
            Ok(())
        })
        .expect("no failure");
    }

    #[test]
    fn a_failure_or_panic_stops_those_that_wait() {
        let mut team = Team::new(3).expect("threads");
        let error = KernelError::Shape { what: "a test" };
        for round in 0..20 {
            let e = team.run(|w| {
                if w.index() == round % 3 {
                    return Err(error);
                }
                w.barrier()
            });
            assert_eq!(e, Err(error));
            let hook = std::panic::take_hook();
            std::panic::set_hook(Box::new(|_| {}));
            let e = team.run(|w| {
                assert!(w.index() != round % 3, "a test");
                w.barrier()
            });
            std::panic::set_hook(hook);
            assert_eq!(e, Err(KernelError::Panicked));
            assert_eq!(team.run(meet), Ok(()));
        }
    }

    #[test]
    fn parked_threads_wake() {
        let mut team = Team::new(2).expect("threads");
        for _ in 0..3 {
            std::thread::sleep(std::time::Duration::from_millis(30));
            team.run(meet).expect("no failure");
        }
    }

    #[test]
    fn a_device_has_a_thread() {
        assert!(matches!(Team::new(0), Err(TeamError::Empty)));
        assert!(matches!(Team::of_devices(&[1, 0]), Err(TeamError::Empty)));
    }
}
