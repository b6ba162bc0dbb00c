//! Ctrl-C: the first ends the answer that is being generated, the next the program.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::SIGINT;
use signal_hook::flag;

/// The exit status of a program that Ctrl-C ended, as shells have it: 128 and the signal's number.
pub(super) const INTERRUPTED: u8 = 130;

/// Whether the next Ctrl-C ends the program: nothing is being generated, or it was asked to end already.
#[derive(Clone, Debug)]
pub(super) struct Interrupt(Arc<AtomicBool>);

/// The time in which Ctrl-C ends the work, and not the program.
#[derive(Debug)]
pub(super) struct Work<'a>(&'a AtomicBool);

impl Interrupt {
    /// Listens for Ctrl-C. Where the system does not allow it, Ctrl-C ends the program as it always does.
    pub(super) fn listen() -> Interrupt {
        let ends = Arc::new(AtomicBool::new(true));
        // The order counts: a signal is looked at before it is noted.
        let _ = flag::register_conditional_shutdown(SIGINT, INTERRUPTED.into(), Arc::clone(&ends))
            .and_then(|_| flag::register(SIGINT, Arc::clone(&ends)));
        Interrupt(ends)
    }

    /// Whether the user asked for the end of the work.
    pub(super) fn ends_work(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    /// Begins work that Ctrl-C ends.
    pub(super) fn work(&self) -> Work<'_> {
        self.0.store(false, Ordering::SeqCst);
        Work(&self.0)
    }
}

impl Drop for Work<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}
