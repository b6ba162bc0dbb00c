use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::admission::{Admission, AdmissionLimits};
use crate::metrics::Metrics;
use crate::pulse::Pulse;
use crate::snapshot::Snapshot;

/// The state that the scheduler's thread and the requests' threads share.
#[derive(Debug)]
pub(crate) struct Shared {
    /// The state of the current batch.
    pub(crate) pulse: Pulse,
    pub(crate) metrics: Metrics,
    pub(crate) admission: Admission,
    requests: AtomicU64,
    draining: AtomicBool,
    aborting: AtomicBool,
    snapshot: Mutex<Snapshot>,
    /// The model's error, until a batch succeeds again.
    broken: Mutex<Option<String>>,
}

impl Shared {
    pub(crate) fn new(limits: AdmissionLimits) -> Shared {
        Shared {
            pulse: Pulse::new(),
            metrics: Metrics::default(),
            admission: Admission::new(limits),
            requests: AtomicU64::new(0),
            draining: AtomicBool::new(false),
            aborting: AtomicBool::new(false),
            snapshot: Mutex::default(),
            broken: Mutex::default(),
        }
    }

    /// Returns the number of the next request.
    pub(crate) fn next_request(&self) -> u64 {
        self.requests.fetch_add(1, Ordering::Relaxed)
    }

    /// Starts the shutdown: requests in progress end, new ones are refused.
    pub(crate) fn drain(&self) {
        self.draining.store(true, Ordering::SeqCst);
    }

    /// Ends requests in progress.
    pub(crate) fn abort(&self) {
        self.aborting.store(true, Ordering::SeqCst);
        self.drain();
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::SeqCst)
    }

    /// True if the shutdown has begun and all requests have ended, or must end.
    pub(crate) fn is_drained(&self) -> bool {
        self.aborting.load(Ordering::SeqCst) || self.is_draining() && self.admission.open() == 0
    }

    pub(crate) fn publish(&self, snapshot: Snapshot) {
        *self.snapshot.lock().unwrap_or_else(PoisonError::into_inner) = snapshot;
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        let snapshot = self.snapshot.lock();
        snapshot.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sets or clears the model's error.
    pub(crate) fn set_broken(&self, why: Option<String>) {
        *self.broken.lock().unwrap_or_else(PoisonError::into_inner) = why;
    }

    pub(crate) fn broken(&self) -> Option<String> {
        let broken = self.broken.lock();
        broken.unwrap_or_else(PoisonError::into_inner).clone()
    }
}
