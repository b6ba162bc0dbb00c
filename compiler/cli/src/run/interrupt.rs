//! Handles Ctrl-C: the first one ends the answer, the second one the program.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::SIGINT;
use signal_hook::flag;

/// The exit status after Ctrl-C, by the shells' convention: 128 plus the signal number.
pub(super) const INTERRUPTED: u8 = 130;

/// True if the next Ctrl-C ends the program, because no answer is in progress or Ctrl-C already ended the answer.
#[derive(Clone, Debug)]
pub(super) struct Interrupt(Arc<AtomicBool>);

/// A guard: while it exists, Ctrl-C ends the work, not the program.
#[derive(Debug)]
pub(super) struct Work<'a>(&'a AtomicBool);

impl Interrupt {
    /// Registers the handlers. If this fails, Ctrl-C ends the program.
    pub(super) fn listen() -> Interrupt {
        let ends = Arc::new(AtomicBool::new(true));
        // The first handler must read the flag before the second sets it.
        let _ = flag::register_conditional_shutdown(SIGINT, INTERRUPTED.into(), Arc::clone(&ends))
            .and_then(|_| flag::register(SIGINT, Arc::clone(&ends)));
        Interrupt(ends)
    }

    pub(super) fn ends_work(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

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
