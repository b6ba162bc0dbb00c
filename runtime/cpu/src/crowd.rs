//! Threads that wait for a core, and the number of workers that a run can use.
//!
//! If another process takes a core, a worker on this core is interrupted in the middle of a launch, and all others
//! wait for it. Decoding is then faster without this worker. [`Crew`] leaves workers out for a while, then tries
//! all of them again.

use std::time::{Duration, Instant};

/// The first pause of workers that are left out. Each failed trial doubles the pause, up to [`LONGEST`].
const FIRST: Duration = Duration::from_millis(64);
const LONGEST: Duration = Duration::from_secs(2);
/// Number of runs without interruption that reset the pause to [`FIRST`].
const CALM: u32 = 32;
/// Runs with interruptions, one after the other, before workers are left out.
const STRIKES: u32 = 2;
/// Worker time before a team reports that it waits for cores.
const JUDGED: Duration = Duration::from_secs(2);
/// Shorter runs are not judged.
const SHORT: Duration = Duration::from_micros(200);

/// A worker's losses in a run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lost {
    /// Time without a core, although the thread could run.
    pub(crate) delayed: Duration,
    /// Time asleep until other workers were done.
    pub(crate) waited: Duration,
}

/// Returns the time that this thread has waited for a core, since it started. Returns zero if the system does not
/// tell.
pub(crate) fn delay() -> Duration {
    #[cfg(target_os = "linux")]
    {
        use std::fs::File;
        use std::os::unix::fs::FileExt;
        thread_local! {
            static STATISTICS: Option<File> = File::open("/proc/thread-self/schedstat").ok();
        }
        let mut buffer = [0; 96];
        let read = STATISTICS.with(|file| file.as_ref()?.read_at(&mut buffer, 0).ok());
        let text = std::str::from_utf8(&buffer[..read.unwrap_or(0)]).unwrap_or("");
        // Nanoseconds on a core, nanoseconds in the queue for one, number of time slices.
        let queued = text.split_whitespace().nth(1);
        Duration::from_nanos(queued.and_then(|n| n.parse().ok()).unwrap_or(0))
    }
    #[cfg(not(target_os = "linux"))]
    Duration::ZERO
}

/// The workers that take part in runs.
#[derive(Debug)]
pub(crate) struct Crew {
    /// Workers per device.
    all: Box<[usize]>,
    /// Workers of the next run per device. The last workers of a device are left out first.
    active: Box<[usize]>,
    /// The end of the pause.
    until: Option<Instant>,
    pause: Duration,
    strikes: u32,
    calm: u32,
    /// Worker time without a core, and all worker time.
    starved: Duration,
    total: Duration,
}

impl Crew {
    pub(crate) fn new(all: &[usize]) -> Crew {
        Crew {
            all: all.into(),
            active: all.into(),
            until: None,
            pause: FIRST,
            strikes: 0,
            calm: 0,
            starved: Duration::ZERO,
            total: Duration::ZERO,
        }
    }

    /// Leaves out the last `n` workers of each device for all later runs.
    #[cfg(test)]
    pub(crate) fn leave_out(&mut self, n: usize) {
        let counts = self.active.iter_mut().zip(&self.all);
        counts.for_each(|(active, all)| *active = all.saturating_sub(n).max(1));
    }

    /// Returns the number of workers per device for a run that begins `now`.
    pub(crate) fn begin(&mut self, now: Instant) -> &[usize] {
        if self.until.is_some_and(|until| now >= until) {
            self.until = None;
            self.active.copy_from_slice(&self.all);
            // One more interruption is enough.
            self.strikes = STRIKES - 1;
        }
        &self.active
    }

    /// Returns the share of time without a core, over all workers and runs. Returns 0 before [`JUDGED`].
    pub(crate) fn starved(&self) -> f64 {
        if self.total < JUDGED {
            return 0.0;
        }
        self.starved.as_secs_f64() / self.total.as_secs_f64()
    }

    /// Judges a run that took `wall`. `lost(d, i)` are the losses of worker `i` of device `d`.
    pub(crate) fn end(
        &mut self,
        now: Instant,
        wall: Duration,
        lost: impl Fn(usize, usize) -> Lost,
    ) {
        let mut fewer = false;
        let mut interrupted = false;
        let judged = wall >= SHORT;
        for d in 0..self.all.len() {
            let active = self.active[d];
            self.total += wall * self.all[d] as u32;
            self.starved += wall * (self.all[d] - active) as u32;
            let (mut delayed, mut useful) = (0, Duration::ZERO);
            for i in 0..active {
                let lost = lost(d, i);
                delayed += usize::from(lost.delayed > wall / 8);
                useful += wall.saturating_sub(lost.delayed.max(lost.waited));
                self.starved += lost.delayed.min(wall);
            }
            if !judged || delayed == 0 || active == 1 {
                continue;
            }
            let keep = (active - delayed).max(1);
            // Threads share bandwidth, so `keep` undisturbed workers do more than the same time of more workers.
            if useful < wall * keep as u32 * 5 / 4 {
                interrupted = true;
                if self.strikes + 1 >= STRIKES {
                    self.active[d] = keep;
                    fewer = true;
                }
            }
        }
        if !judged {
            return;
        }
        if fewer {
            self.until = Some(now + self.pause);
            self.pause = (self.pause * 2).min(LONGEST);
        }
        if interrupted {
            self.strikes += 1;
            self.calm = 0;
        } else {
            self.strikes = 0;
            self.calm += u32::from(self.until.is_none());
        }
        if self.calm >= CALM {
            self.pause = FIRST;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: Duration = Duration::from_millis(8);

    fn lost(delayed: u64, waited: u64) -> Lost {
        Lost {
            delayed: Duration::from_millis(delayed),
            waited: Duration::from_millis(waited),
        }
    }

    #[test]
    fn an_interrupted_worker_is_left_out_and_tried_again() {
        let start = Instant::now();
        let mut crew = Crew::new(&[2, 1]);
        let busy = |d: usize, i: usize| match (d, i) {
            (0, 0) => lost(0, 4),
            (0, 1) => lost(4, 4),
            _ => lost(0, 0),
        };
        assert_eq!(crew.begin(start), [2, 1]);
        crew.end(start, RUN, busy);
        assert_eq!(crew.begin(start), [2, 1], "once is chance");
        crew.end(start, RUN, busy);
        assert_eq!(crew.begin(start), [1, 1]);
        crew.end(start, RUN, |_, _| lost(0, 0));
        let later = start + FIRST;
        assert_eq!(crew.begin(later), [2, 1]);
        crew.end(later, RUN, busy);
        assert_eq!(crew.begin(later + FIRST), [1, 1], "the pause doubles");
        let later = later + 2 * FIRST;
        assert_eq!(crew.begin(later), [2, 1]);
        crew.end(later, RUN, |_, _| lost(0, 0));
        assert_eq!(crew.begin(later), [2, 1]);
    }

    #[test]
    fn time_without_a_core_is_counted() {
        let start = Instant::now();
        let mut crew = Crew::new(&[2, 1]);
        let long = Duration::from_secs(1);
        crew.end(start, RUN, |_, _| lost(8, 0));
        assert_eq!(crew.starved(), 0.0, "too early");
        crew.end(
            start,
            long,
            |_, i| if i == 1 { lost(300, 0) } else { lost(0, 0) },
        );
        let share = crew.starved();
        assert!((0.09..0.12).contains(&share), "{share}");
    }

    #[test]
    fn a_worker_that_still_helps_is_kept() {
        let start = Instant::now();
        let mut crew = Crew::new(&[2]);
        for _ in 0..10 {
            assert_eq!(crew.begin(start), [2]);
            crew.end(
                start,
                RUN,
                |_, i| if i == 0 { lost(0, 1) } else { lost(4, 0) },
            );
        }
        // Waits without interruptions are uneven work.
        for _ in 0..10 {
            assert_eq!(crew.begin(start), [2]);
            crew.end(
                start,
                RUN,
                |_, i| if i == 0 { lost(0, 7) } else { lost(0, 0) },
            );
        }
    }

    #[test]
    fn one_worker_stays() {
        let start = Instant::now();
        let mut crew = Crew::new(&[4]);
        for _ in 0..10 {
            let active = crew.begin(start)[0];
            assert!(active >= 1);
            crew.end(start, RUN, |_, _| lost(7, 7));
        }
        assert_eq!(crew.begin(start), [1]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn delays_never_decrease() {
        let before = delay();
        std::thread::yield_now();
        assert!(delay() >= before);
    }
}
