//! Waiting for other threads: spin briefly, then sleep until a thread rings the bell.

use std::sync::atomic::{AtomicUsize, Ordering, fence};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The longest sleep. A thread that forgets to ring delays sleepers by this time at most.
const SLEEP: Duration = Duration::from_millis(1);

/// Wakes threads that sleep until a condition holds.
#[derive(Debug)]
pub(crate) struct Bell {
    sleepers: AtomicUsize,
    lock: Mutex<()>,
    rung: Condvar,
}

impl Bell {
    pub(crate) const fn new() -> Bell {
        Bell {
            sleepers: AtomicUsize::new(0),
            lock: Mutex::new(()),
            rung: Condvar::new(),
        }
    }

    /// Waits until `done` returns true. Returns the time after `spins` checks, or zero if spinning was enough.
    pub(crate) fn wait(&self, spins: u32, mut done: impl FnMut() -> bool) -> Duration {
        for _ in 0..spins {
            if done() {
                return Duration::ZERO;
            }
            std::hint::spin_loop();
        }
        let begun = Instant::now();
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let mut guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        // A thread that changes the condition after this check sees the sleeper, and rings after the lock is free.
        while !done() {
            let woken = self.rung.wait_timeout(guard, SLEEP);
            (guard, _) = woken.unwrap_or_else(PoisonError::into_inner);
        }
        drop(guard);
        self.sleepers.fetch_sub(1, Ordering::Relaxed);
        begun.elapsed()
    }

    /// Wakes all sleepers, after a change that they may wait for.
    pub(crate) fn ring(&self) {
        fence(Ordering::SeqCst);
        if self.sleepers.load(Ordering::Relaxed) > 0 {
            drop(self.lock.lock().unwrap_or_else(PoisonError::into_inner));
            self.rung.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleepers_wake_when_the_condition_holds() {
        let (bell, turn) = (Bell::new(), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for me in 0..3 {
                let (bell, turn) = (&bell, &turn);
                scope.spawn(move || {
                    for round in 0..200 {
                        let mine = 3 * round + me;
                        bell.wait(0, || turn.load(Ordering::Acquire) == mine);
                        turn.store(mine + 1, Ordering::Release);
                        bell.ring();
                    }
                });
            }
        });
        assert_eq!(turn.into_inner(), 600);
    }

    #[test]
    fn only_sleep_is_counted() {
        let bell = Bell::new();
        assert_eq!(bell.wait(1, || true), Duration::ZERO);
        let begun = Instant::now();
        let until = Duration::from_millis(5);
        let slept = bell.wait(1, || begun.elapsed() >= until);
        assert!(slept >= Duration::from_millis(2), "{slept:?}");
    }
}
