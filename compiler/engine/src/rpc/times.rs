//! How long graphs take that a client has computed again, and how much of that is not their programs.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::observer::Observer;

/// The times of a connection, which are reported when it ends.
pub(super) struct Times {
    observer: Arc<dyn Observer>,
    /// When the graph that is computed was asked for, if it is the last one again.
    begun: Option<Instant>,
    /// What its program took.
    inside: Duration,
    graphs: u32,
    all: Duration,
    outside: Duration,
}

impl Times {
    pub(super) fn new(observer: Arc<dyn Observer>) -> Times {
        Times {
            observer,
            begun: None,
            inside: Duration::ZERO,
            graphs: 0,
            all: Duration::ZERO,
            outside: Duration::ZERO,
        }
    }

    /// A graph is asked for.
    pub(super) fn begin(&mut self, is_again: bool) {
        self.begun = is_again.then(Instant::now);
    }

    /// Runs the program of the graph.
    pub(super) fn within<T>(&mut self, run: impl FnOnce() -> T) -> T {
        let from = Instant::now();
        let out = run();
        self.inside = from.elapsed();
        out
    }

    /// The graph is computed.
    pub(super) fn end(&mut self) {
        if let Some(begun) = self.begun.take() {
            let all = begun.elapsed();
            self.graphs += 1;
            self.all += all;
            self.outside += all.saturating_sub(self.inside);
        }
    }
}

impl Drop for Times {
    fn drop(&mut self) {
        if self.graphs > 0 {
            let each = |all: Duration| all.as_secs_f64() * 1e6 / f64::from(self.graphs);
            self.observer.detail(&format!(
                "{} graphs computed again, each in {:.0} us, {:.0} us of them outside its program",
                self.graphs,
                each(self.all),
                each(self.outside)
            ));
        }
    }
}
