use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The grace period of a batch before it counts as hung, besides a multiple of its expected time.
const GRACE: Duration = Duration::from_secs(3);

/// The multiple of a batch's expected time.
const TIMES: f64 = 4.0;

/// The expected time per token before the first measurement.
const UNKNOWN: f64 = 0.5;

/// The state of the current batch, read by the watchdog. The scheduler writes it, any thread may read it.
#[derive(Debug)]
pub(crate) struct Pulse {
    epoch: Instant,
    /// Start of the current batch in milliseconds since `epoch`, plus 1; 0 between batches.
    begun: AtomicU64,
    /// Time limit of the current batch in milliseconds.
    limit: AtomicU64,
    /// The slowest recent time per token, in nanoseconds; 0 before the first batch.
    pace: AtomicU64,
}

/// A batch that takes longer than its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hung {
    /// Time since the start of the batch.
    pub(crate) since: Duration,
    /// The limit.
    pub(crate) limit: Duration,
}

impl Pulse {
    pub(crate) fn new() -> Pulse {
        Pulse {
            epoch: Instant::now(),
            begun: AtomicU64::new(0),
            limit: AtomicU64::new(0),
            pace: AtomicU64::new(0),
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.epoch.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Marks the start of a batch of at most `tokens` tokens.
    pub(crate) fn begin(&self, tokens: usize) {
        let pace = match self.pace.load(Ordering::Relaxed) {
            0 => UNKNOWN,
            nanos => nanos as f64 * 1e-9,
        };
        let limit = GRACE + Duration::from_secs_f64((TIMES * pace * tokens as f64).min(3600.0));
        let limit = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
        self.limit.store(limit, Ordering::Relaxed);
        self.begun.store(self.now() + 1, Ordering::Release);
    }

    /// Marks the end of a batch that read `tokens` tokens.
    pub(crate) fn end(&self, tokens: usize, took: Duration) {
        self.begun.store(0, Ordering::Release);
        if tokens > 0 {
            let found = took.as_secs_f64() / tokens as f64 * 1e9;
            let known = self.pace.load(Ordering::Relaxed) as f64 * 0.95;
            self.pace
                .store(found.max(known).max(1.0) as u64, Ordering::Relaxed);
        }
    }

    /// Returns the current batch if it has exceeded its limit.
    pub(crate) fn hung(&self) -> Option<Hung> {
        let begun = self.begun.load(Ordering::Acquire).checked_sub(1)?;
        let since = Duration::from_millis(self.now().saturating_sub(begun));
        let limit = Duration::from_millis(self.limit.load(Ordering::Relaxed));
        (since > limit).then_some(Hung { since, limit })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_hangs_after_its_limit() {
        let pulse = Pulse::new();
        pulse.end(10, Duration::from_millis(100));
        pulse.begin(5);
        // 3 s and four times 50 ms.
        assert_eq!(pulse.limit.load(Ordering::Relaxed), 3200);
        assert_eq!(pulse.hung(), None);
        pulse.limit.store(0, Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(5));
        assert!(pulse.hung().is_some());
        pulse.end(5, Duration::from_millis(5));
        assert_eq!(pulse.hung(), None);
    }
}
