//! Counters and histograms, written in Prometheus' text format.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A number that only grows.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A sum of times.
#[derive(Debug, Default)]
pub(crate) struct Seconds(AtomicU64);

impl Seconds {
    pub(crate) fn add(&self, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.0.fetch_add(nanos, Ordering::Relaxed);
    }

    fn get(&self) -> f64 {
        self.0.load(Ordering::Relaxed) as f64 * 1e-9
    }
}

/// Upper bounds of the histograms' buckets, in seconds.
const BOUNDS: [f64; 14] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0,
];

/// A histogram of times.
#[derive(Debug, Default)]
pub(crate) struct Histogram {
    buckets: [AtomicU64; BOUNDS.len() + 1],
    sum: Seconds,
}

impl Histogram {
    pub(crate) fn observe(&self, seconds: f64) {
        let at = BOUNDS.iter().position(|bound| seconds <= *bound);
        self.buckets[at.unwrap_or(BOUNDS.len())].fetch_add(1, Ordering::Relaxed);
        self.sum
            .add(Duration::try_from_secs_f64(seconds).unwrap_or_default());
    }

    fn write(&self, name: &str, help: &str, out: &mut String) {
        let _ = writeln!(out, "# HELP tpc_{name} {help}\n# TYPE tpc_{name} histogram");
        let mut count = 0;
        for (i, bucket) in self.buckets.iter().enumerate() {
            count += bucket.load(Ordering::Relaxed);
            let bound = BOUNDS.get(i).map_or("+Inf".to_owned(), f64::to_string);
            let _ = writeln!(out, "tpc_{name}_bucket{{le=\"{bound}\"}} {count}");
        }
        let _ = writeln!(
            out,
            "tpc_{name}_sum {}\ntpc_{name}_count {count}",
            self.sum.get()
        );
    }
}

/// The server's metrics.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    /// Requests by result: answered, cancelled, failed, refused.
    pub(crate) answered: Counter,
    pub(crate) cancelled: Counter,
    pub(crate) failed: Counter,
    pub(crate) refused: Counter,
    pub(crate) prompt_tokens: Counter,
    pub(crate) cached_tokens: Counter,
    pub(crate) answer_tokens: Counter,
    pub(crate) drafted: Counter,
    pub(crate) accepted: Counter,
    pub(crate) batches: Counter,
    pub(crate) batch_seconds: Seconds,
    pub(crate) queue: Histogram,
    pub(crate) first_token: Histogram,
    pub(crate) between_tokens: Histogram,
    pub(crate) request: Histogram,
}

impl Metrics {
    /// Counts a batch with tokens of prompts and answers.
    pub(crate) fn batch(&self, prompt: usize, answer: usize, took: Duration) {
        self.prompt_tokens.add(prompt as u64);
        self.answer_tokens.add(answer as u64);
        self.batches.add(1);
        self.batch_seconds.add(took);
    }

    /// Writes all metrics. `gauges` are name, help and value of further numbers.
    pub(crate) fn write(&self, gauges: &[(&str, &str, f64)]) -> String {
        let mut out = String::new();
        let counters = [
            (
                "prompt_tokens_total",
                "Prompt tokens that the model read.",
                &self.prompt_tokens,
            ),
            (
                "cached_tokens_total",
                "Prompt tokens from the caches.",
                &self.cached_tokens,
            ),
            (
                "answer_tokens_total",
                "Tokens of answers.",
                &self.answer_tokens,
            ),
            ("drafted_tokens_total", "Drafted tokens.", &self.drafted),
            ("accepted_tokens_total", "Accepted drafts.", &self.accepted),
            ("batches_total", "Batches of the model.", &self.batches),
        ];
        for (name, help, counter) in counters {
            let _ = writeln!(out, "# HELP tpc_{name} {help}\n# TYPE tpc_{name} counter");
            let _ = writeln!(out, "tpc_{name} {}", counter.get());
        }
        let _ = writeln!(
            out,
            "# HELP tpc_batch_seconds_total Time of all batches.\n# TYPE tpc_batch_seconds_total counter\n\
             tpc_batch_seconds_total {}",
            self.batch_seconds.get()
        );
        out.push_str(
            "# HELP tpc_requests_total Requests by result.\n# TYPE tpc_requests_total counter\n",
        );
        for (result, counter) in [
            ("answered", &self.answered),
            ("cancelled", &self.cancelled),
            ("failed", &self.failed),
            ("refused", &self.refused),
        ] {
            let _ = writeln!(
                out,
                "tpc_requests_total{{result=\"{result}\"}} {}",
                counter.get()
            );
        }
        for (name, help, value) in gauges {
            let _ = writeln!(
                out,
                "# HELP tpc_{name} {help}\n# TYPE tpc_{name} gauge\ntpc_{name} {value}"
            );
        }
        self.queue
            .write("queue_seconds", "Time in the queue.", &mut out);
        self.first_token.write(
            "time_to_first_token_seconds",
            "Time from the request to the first token.",
            &mut out,
        );
        self.between_tokens.write(
            "time_between_tokens_seconds",
            "Time between two tokens of an answer.",
            &mut out,
        );
        self.request
            .write("request_seconds", "Time of a request.", &mut out);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_cumulative() {
        let metrics = Metrics::default();
        for seconds in [0.0005, 0.03, 0.03, 100.0] {
            metrics.queue.observe(seconds);
        }
        metrics.answered.add(3);
        let text = metrics.write(&[("slots", "Slots.", 8.0)]);
        for line in [
            "tpc_queue_seconds_bucket{le=\"0.001\"} 1",
            "tpc_queue_seconds_bucket{le=\"0.05\"} 3",
            "tpc_queue_seconds_bucket{le=\"60\"} 3",
            "tpc_queue_seconds_bucket{le=\"+Inf\"} 4",
            "tpc_queue_seconds_count 4",
            "tpc_requests_total{result=\"answered\"} 3",
            "tpc_slots 8",
        ] {
            assert!(text.lines().any(|l| l == line), "{line}\n{text}");
        }
    }
}
