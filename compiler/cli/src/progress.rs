use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{JoinHandle, spawn};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Delay before the line appears.
const DELAY: Duration = Duration::from_secs(1);
/// Time between two redraws.
const TICK: Duration = Duration::from_millis(100);

/// A line with the current work. Appears only on a terminal, after a second; disappears when dropped.
pub(super) struct Progress {
    bar: ProgressBar,
    /// Dropping the sender stops the thread that waits to show the line.
    stop: Option<Sender<()>>,
    delayed: Option<JoinHandle<()>>,
}

impl Progress {
    pub(super) fn start(work: impl Into<String>) -> Progress {
        Progress::of_style(None, "{spinner} {elapsed:>4}  {wide_msg}", work.into())
    }

    pub(super) fn with_steps(work: impl Into<String>, steps: usize) -> Progress {
        let template = "{spinner} {elapsed:>4}  {pos} of {len}, {eta} left: {wide_msg}";
        Progress::of_style(Some(steps as u64), template, work.into())
    }

    /// Starts work with counted steps and unknown length.
    pub(super) fn counting(work: impl Into<String>) -> Progress {
        let template = "{spinner} {elapsed:>4}  {pos} tried: {wide_msg}";
        Progress::of_style(None, template, work.into())
    }

    /// Starts a download of `whole` bytes, of which `at` are present.
    pub(super) fn receiving(work: impl Into<String>, at: u64, whole: u64) -> Progress {
        let template =
            "{spinner} {elapsed:>4}  {percent} %, {binary_bytes_per_sec}, {eta} left: {wide_msg}";
        let progress = Progress::of_style(Some(whole), template, work.into());
        progress.bar.set_position(at);
        progress.bar.reset_eta();
        progress
    }

    /// Counts received bytes.
    pub(super) fn received(&self, bytes: u64) {
        self.bar.inc(bytes);
    }

    pub(super) fn advance(&self, steps: usize) {
        self.bar.inc(steps as u64);
    }

    /// Hides the line while `print` runs.
    pub(super) fn aside<T>(&self, print: impl FnOnce() -> T) -> T {
        self.bar.suspend(print)
    }

    fn of_style(steps: Option<u64>, template: &str, work: String) -> Progress {
        let bar = ProgressBar::with_draw_target(steps, ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_message(work);
        let (stop, stopped) = channel();
        let shown = bar.clone();
        let delayed = spawn(move || {
            if stopped.recv_timeout(DELAY) == Err(RecvTimeoutError::Timeout) {
                // indicatif draws the line only if standard error is a terminal.
                shown.set_draw_target(ProgressDrawTarget::stderr());
                shown.enable_steady_tick(TICK);
            }
        });
        Progress {
            bar,
            stop: Some(stop),
            delayed: Some(delayed),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(delayed) = self.delayed.take() {
            let _ = delayed.join();
        }
        self.bar.finish_and_clear();
    }
}
