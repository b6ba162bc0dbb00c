//! The time of repeated graphs, and the overhead outside their programs.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::observer::Observer;

/// Times of a connection's repeated graphs. They are reported on drop.
pub(super) struct Times {
    observer: Arc<dyn Observer>,
    /// Start of the current request, if it repeats the last graph.
    start: Option<Instant>,
    program: Duration,
    graphs: u32,
    total: Duration,
    overhead: Duration,
}

impl Times {
    pub(super) fn new(observer: Arc<dyn Observer>) -> Times {
        Times {
            observer,
            start: None,
            program: Duration::ZERO,
            graphs: 0,
            total: Duration::ZERO,
            overhead: Duration::ZERO,
        }
    }

    pub(super) fn begin(&mut self, is_repeated: bool) {
        self.start = is_repeated.then(Instant::now);
    }

    pub(super) fn measure<T>(&mut self, run: impl FnOnce() -> T) -> T {
        let from = Instant::now();
        let out = run();
        self.program = from.elapsed();
        out
    }

    pub(super) fn end(&mut self) {
        if let Some(start) = self.start.take() {
            let time = start.elapsed();
            self.graphs += 1;
            self.total += time;
            self.overhead += time.saturating_sub(self.program);
        }
    }
}

impl Drop for Times {
    fn drop(&mut self) {
        if self.graphs > 0 {
            let each = |total: Duration| total.as_secs_f64() * 1e6 / f64::from(self.graphs);
            self.observer.detail(&format!(
                "{} repeated graphs, each in {:.0} us, of these {:.0} us outside its program",
                self.graphs,
                each(self.total),
                each(self.overhead)
            ));
        }
    }
}
