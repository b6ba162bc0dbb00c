//! Threads that run launches together. Waiting threads spin for a while, then sleep.
//!
//! A thread that sleeps leaves its core to others, and another thread wakes it. On a busy machine, a run uses fewer
//! workers ([`Crew`]).

use std::cell::UnsafeCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle, Thread};
use std::time::{Duration, Instant};

use crate::bell::Bell;
use crate::crowd::{Crew, Lost, delay};
use crate::error::{KernelError, TeamError};
use crate::pin::{self, Pinned};
use crate::worker::{Apart, Group, Meeting, Worker};

/// Checks before a waiting thread sleeps: about a tenth of a millisecond.
const SPINS: u32 = 1 << 13;
/// The same if there are more threads than cores.
const SPINS_CROWDED: u32 = 1 << 8;
/// Checks before an idle thread parks.
const IDLE_TURNS: u32 = 1 << 14;

type Job<'a> = dyn Fn(&Worker<'_>) -> Result<(), KernelError> + Sync + 'a;

/// A worker's group, index, and mailbox.
#[derive(Debug, Default)]
struct Seat {
    group: usize,
    index: usize,
    /// The core of the thread; `None` if the system places it.
    core: Option<usize>,
    /// Number of runs that the worker takes part in.
    calls: AtomicUsize,
    /// True if the thread sleeps or will sleep.
    parked: AtomicBool,
    /// [`delay`] at the end of the last run, in nanoseconds.
    queued: AtomicU64,
    /// Losses in the last run, in nanoseconds.
    delayed: AtomicU64,
    waited: AtomicU64,
}

impl Seat {
    fn lost(&self) -> Lost {
        let of = |n: &AtomicU64| Duration::from_nanos(n.load(Ordering::Relaxed));
        Lost {
            delayed: of(&self.delayed),
            waited: of(&self.waited),
        }
    }
}

const fn nanoseconds(d: Duration) -> u64 {
    d.as_nanos() as u64
}

struct Shared {
    groups: Box<[Group]>,
    /// Workers of this run, per group.
    active: Box<[AtomicUsize]>,
    /// The group of the first worker comes first, and the workers of a group follow each other.
    seats: Box<[Apart<Seat>]>,
    /// Threads that have not finished the run.
    pending: Apart<AtomicUsize>,
    /// The job of the current run.
    job: UnsafeCell<Option<*const Job<'static>>>,
    stop: AtomicBool,
    bell: Bell,
    /// The failed worker with the lowest index, and its error.
    failure: Mutex<Option<(usize, KernelError)>>,
    quit: AtomicBool,
    spins: u32,
}

// SAFETY: the team's owner writes `job` while no thread runs (`pending` is 0) and publishes it by the `calls` of the
// threads that take part. They read `job` after they have seen the call and before they decrement `pending`. The job
// itself is `Sync`.
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
        self.bell.ring();
    }

    fn take_part(&self, number: usize, job: &Job<'_>) {
        let seat = &self.seats[number].0;
        let count = self.active[seat.group].load(Ordering::Relaxed);
        let meeting = Meeting {
            stop: &self.stop,
            bell: &self.bell,
            spins: self.spins,
        };
        let group = &self.groups[seat.group];
        let worker = Worker::new(group, (seat.index, count, number), meeting);
        if number == 0 {
            // The caller's delays between runs do not count. Other threads only wait for the run.
            seat.queued.store(nanoseconds(delay()), Ordering::Relaxed);
        }
        match catch_unwind(AssertUnwindSafe(|| job(&worker))) {
            Ok(Ok(())) => {}
            Ok(Err(e)) => self.failed(number, e),
            Err(_) => self.failed(number, KernelError::Panicked),
        }
        let queued = nanoseconds(delay());
        let before = seat.queued.swap(queued, Ordering::Relaxed);
        let delayed = queued.saturating_sub(before);
        seat.delayed.store(delayed, Ordering::Relaxed);
        let waited = nanoseconds(worker.waited());
        seat.waited.store(waited, Ordering::Relaxed);
    }

    fn serve(&self, number: usize) {
        if let Some(core) = self.seats[number].0.core {
            // The team has checked the core.
            let _ = pin::pin(core);
        }
        let mut seen = 0;
        loop {
            self.idle(number, seen);
            seen = seen.wrapping_add(1);
            if self.quit.load(Ordering::Acquire) {
                return;
            }
            // SAFETY: the owner has called this thread after the job was written, and waits for `pending` before the
            // job ends or changes.
            #[allow(unsafe_code)]
            let job = unsafe { (*self.job.get()).map(|job| &*job) };
            if let Some(job) = job {
                self.take_part(number, job);
            }
            self.pending.0.fetch_sub(1, Ordering::Release);
            self.bell.ring();
        }
    }

    /// Waits for a call after call `seen`.
    fn idle(&self, number: usize, seen: usize) {
        let Seat { calls, parked, .. } = &self.seats[number].0;
        let called = || calls.load(Ordering::SeqCst) != seen;
        for _ in 0..IDLE_TURNS {
            if called() {
                return;
            }
            std::hint::spin_loop();
        }
        while !called() {
            parked.store(true, Ordering::SeqCst);
            // If the call comes after this store, the caller sees the flag. Otherwise, the next check sees the call.
            if !called() {
                thread::park();
            }
            parked.store(false, Ordering::SeqCst);
        }
    }
}

/// Threads in groups, one per device. The caller of [`Team::run`] is the first worker of the first group. If its group
/// has cores, the caller is pinned during runs only, and has its old cores between them.
#[derive(Debug)]
pub struct Team {
    shared: Arc<Shared>,
    crew: Crew,
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
        Team::on_cores(threads, &[])
    }

    /// Creates a team with `threads[d]` workers for device `d`. Worker `i` of device `d` runs on core `cores[d][i]`.
    /// The system places workers without a core.
    ///
    /// # Errors
    /// Returns [`TeamError`] if a device has no worker, the process may not use a core, or a thread cannot start.
    pub fn on_cores(threads: &[usize], cores: &[&[usize]]) -> Result<Team, TeamError> {
        if threads.is_empty() || threads.contains(&0) {
            return Err(TeamError::Empty);
        }
        let seats = seats(threads, cores);
        let workers = seats.len();
        for core in seats.iter().filter_map(|seat| seat.0.core) {
            drop(Pinned::to(core).map_err(|source| TeamError::Core { core, source })?);
        }
        let groups = threads.iter().enumerate();
        let crowded = thread::available_parallelism().is_ok_and(|cores| workers > cores.get());
        let shared = Arc::new(Shared {
            groups: groups
                .map(|(device, &count)| Group::new(device, count))
                .collect(),
            active: threads.iter().map(|&count| count.into()).collect(),
            seats,
            pending: Apart::default(),
            job: UnsafeCell::new(None),
            stop: AtomicBool::new(false),
            bell: Bell::new(),
            failure: Mutex::new(None),
            quit: AtomicBool::new(false),
            spins: if crowded { SPINS_CROWDED } else { SPINS },
        });
        let mut team = Team {
            shared,
            crew: Crew::new(threads),
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

    /// Returns the share of time in which workers had no core, over all runs.
    pub fn starved(&self) -> f64 {
        self.crew.starved()
    }

    /// Leaves out the last `n` workers of each device, as on a busy machine.
    #[cfg(test)]
    pub(crate) fn leave_out(&mut self, n: usize) {
        self.crew.leave_out(n);
    }

    /// Runs `job` on the workers and waits for them. Does not allocate. If the machine is busy, the last workers
    /// of a device may not take part; [`Worker::count`] is the number that does.
    ///
    /// # Errors
    /// Returns the error of the first worker whose job failed or panicked. Workers that wait for this worker stop.
    pub fn run(
        &mut self,
        job: impl Fn(&Worker<'_>) -> Result<(), KernelError> + Sync,
    ) -> Result<(), KernelError> {
        let shared = &*self.shared;
        let job: &Job<'_> = &job;
        let pinned = shared.seats[0]
            .0
            .core
            .and_then(|core| Pinned::to(core).ok());
        let begun = Instant::now();
        let mut called = 0;
        for (active, &count) in shared.active.iter().zip(self.crew.begin(begun)) {
            active.store(count, Ordering::Relaxed);
            called += count;
        }
        shared.stop.store(false, Ordering::Relaxed);
        shared.groups.iter().for_each(Group::reset);
        // SAFETY: only the lifetime changes. Threads use the job after they see the call below and until they
        // decrement `pending`, and this function waits for `pending`. No thread reads the cell now, because `pending`
        // is 0.
        #[allow(unsafe_code)]
        unsafe {
            let job: *const Job<'_> = job;
            *shared.job.get() = Some(std::mem::transmute::<*const Job<'_>, *const Job<'static>>(
                job,
            ));
        }
        shared.pending.0.store(called - 1, Ordering::Relaxed);
        self.wake(|seat| seat.index < shared.active[seat.group].load(Ordering::Relaxed));
        shared.take_part(0, job);
        (shared.bell).wait(shared.spins, || {
            shared.pending.0.load(Ordering::Acquire) == 0
        });
        drop(pinned);
        let ended = Instant::now();
        self.crew.end(ended, ended - begun, |device, index| {
            let mut seats = shared.seats.iter().map(|seat| &seat.0);
            let seat = seats.find(|s| (s.group, s.index) == (device, index));
            seat.map(Seat::lost).unwrap_or_default()
        });
        let failure = shared
            .failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        failure.map_or(Ok(()), |(_, error)| Err(error))
    }

    /// Calls the threads of these seats.
    fn wake(&self, which: impl Fn(&Seat) -> bool) {
        for (seat, thread) in self.shared.seats[1..].iter().zip(&self.handles) {
            let seat = &seat.0;
            if !which(seat) {
                continue;
            }
            seat.calls.fetch_add(1, Ordering::SeqCst);
            if seat.parked.load(Ordering::SeqCst) {
                thread.unpark();
            }
        }
    }
}

/// Returns the seats of all workers, group by group.
fn seats(threads: &[usize], cores: &[&[usize]]) -> Box<[Apart<Seat>]> {
    let of_group = |(group, &count): (usize, &usize)| {
        let cores = cores.get(group).copied().unwrap_or_default();
        (0..count).map(move |index| {
            Apart(Seat {
                group,
                index,
                core: cores.get(index).copied(),
                ..Seat::default()
            })
        })
    };
    threads.iter().enumerate().flat_map(of_group).collect()
}

impl Drop for Team {
    fn drop(&mut self) {
        self.shared.quit.store(true, Ordering::Release);
        self.wake(|_| true);
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
    fn items_are_divided_completely() {
        for threads in 1..5 {
            let mut team = Team::new(threads).expect("threads");
            let sizes = [0, 1, 3, 7, 16, 1000];
            let done = sizes.map(|n| (0..n).map(|_| AtomicUsize::new(0)).collect::<Vec<_>>());
            team.run(|w| {
                for done in &done {
                    for i in w.items(done.len()) {
                        done[i].fetch_add(1, Ordering::Relaxed);
                    }
                }
                Ok(())
            })
            .expect("no failure");
            let mut all = done.iter().flatten();
            assert!(all.all(|d| d.load(Ordering::Relaxed) == 1));
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
                if w.index() == round % w.count() {
                    return Err(error);
                }
                w.barrier()
            });
            assert_eq!(e, Err(error));
            let hook = std::panic::take_hook();
            std::panic::set_hook(Box::new(|_| {}));
            let e = team.run(|w| {
                assert!(w.index() != round % w.count(), "a test");
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

    #[cfg(target_os = "linux")]
    #[test]
    fn workers_run_on_their_cores_and_the_caller_keeps_its_own() {
        let before = pin::allowed().expect("the cores of this thread");
        let (first, last) = (before[0], before[before.len() - 1]);
        let mut team = Team::on_cores(&[1, 2], &[&[first], &[last]]).expect("threads");
        for _ in 0..3 {
            let runs = team.run(|w| {
                let found = pin::allowed().unwrap_or_default();
                let expected = match (w.device(), w.index()) {
                    (0, _) => vec![first],
                    (_, 0) => vec![last],
                    // More threads than cores: the system places them.
                    (..) => before.clone(),
                };
                assert_eq!(found, expected, "device {}", w.device());
                Ok(())
            });
            assert_eq!(runs, Ok(()));
            assert_eq!(pin::allowed().as_ref(), Some(&before));
        }
        let failed = team.run(|_| Err(KernelError::Shape { what: "a test" }));
        assert!(failed.is_err());
        assert_eq!(pin::allowed().as_ref(), Some(&before));
        let later = thread::spawn(pin::allowed).join().expect("no panic");
        assert_eq!(later, Some(before));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_core_that_the_process_lacks_is_an_error() {
        for core in [1000, 1 << 20, usize::MAX] {
            let found = Team::on_cores(&[1], &[&[core]]);
            assert!(matches!(found, Err(TeamError::Core { .. })), "{core}");
        }
    }

    #[test]
    fn a_device_has_a_thread() {
        assert!(matches!(Team::new(0), Err(TeamError::Empty)));
        assert!(matches!(Team::of_devices(&[1, 0]), Err(TeamError::Empty)));
    }
}
