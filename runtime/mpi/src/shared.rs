use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tpc_runtime::ranks::{RankError, Tag};

use crate::calls::Calls;

/// The tag of a failure's text.
pub(crate) const FAILED: Tag = Tag(4);
/// The tag of a sign of life.
pub(crate) const PULSE: Tag = Tag(5);

/// The part of a [`World`](crate::World) that its watching thread uses.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) rank: usize,
    pub(crate) ranks: usize,
    calls: Mutex<Calls>,
    failed: AtomicBool,
    failure: Mutex<Option<RankError>>,
    pub(crate) quit: AtomicBool,
}

impl Shared {
    pub(crate) fn new(rank: usize, ranks: usize, calls: Calls) -> Shared {
        Shared {
            rank,
            ranks,
            calls: Mutex::new(calls),
            failed: AtomicBool::new(false),
            failure: Mutex::default(),
            quit: AtomicBool::new(false),
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }

    /// Returns the failure of a rank, if any.
    pub(crate) fn failure(&self) -> Option<RankError> {
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.clone()
    }

    /// Records a failure. The first counts.
    pub(crate) fn set_failure(&self, e: RankError) {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.get_or_insert(e);
        drop(failure);
        self.failed.store(true, Ordering::Release);
    }
}
