//! Ctrl-C: the first ends the answer that is being generated, the next the program.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The exit status of a program that Ctrl-C ended, as shells have it: 128 and the signal's number.
const INTERRUPTED: i32 = 130;

#[derive(Debug, Default)]
struct State {
    /// Whether an answer is being generated.
    working: AtomicBool,
    /// Whether it is to end.
    asked: AtomicBool,
}

/// Whether the user asked for an end.
#[derive(Clone, Debug, Default)]
pub(super) struct Interrupt(Arc<State>);

/// The time in which Ctrl-C ends the work, and not the program.
#[derive(Debug)]
pub(super) struct Work<'a>(&'a Interrupt);

impl Interrupt {
    /// Listens for Ctrl-C. Where the system does not allow it, Ctrl-C ends the program as it always does.
    pub(super) fn listen() -> Interrupt {
        let interrupt = Interrupt::default();
        let state = Arc::clone(&interrupt.0);
        let _ = ctrlc::set_handler(move || {
            let idle = !state.working.load(Ordering::SeqCst);
            if idle || state.asked.swap(true, Ordering::SeqCst) {
                std::process::exit(INTERRUPTED);
            }
        });
        interrupt
    }

    /// Begins work that Ctrl-C ends.
    pub(super) fn work(&self) -> Work<'_> {
        self.0.asked.store(false, Ordering::SeqCst);
        self.0.working.store(true, Ordering::SeqCst);
        Work(self)
    }
}

impl Work<'_> {
    /// Whether the user asked for its end.
    pub(super) fn ends(&self) -> bool {
        self.0.0.asked.load(Ordering::SeqCst)
    }
}

impl Drop for Work<'_> {
    fn drop(&mut self) {
        self.0.0.working.store(false, Ordering::SeqCst);
    }
}
