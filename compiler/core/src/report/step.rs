//! The predicted times of a step's kernels, for tpc's own CUDA engine.

use std::fmt::Write;

use schemars::JsonSchema;
use serde::Serialize;

use super::columns::{Align, Columns};
use crate::format::{printable, shortened, speed, wrapped};

/// Predicted times of tpc's kernels on cards, from a model of each launch.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct StepReport {
    /// The card of the first device.
    pub card: String,
    /// A batch of one token.
    pub token: StepTimes,
    /// The largest batch of a prompt.
    pub prompt: StepTimes,
}

/// Predicted times of a batch.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct StepTimes {
    /// Tokens of the batch.
    pub tokens: u64,
    /// Tokens in the cache, including the batch.
    pub cells: u64,
    /// Microseconds of the batch.
    pub us: f64,
    /// Tokens per second.
    pub tps: f64,
    /// Relative error of `tps`.
    pub error: f64,
    /// True if `error` was observed on cards, false if it is assumed.
    pub measured: bool,
    /// Kernels of the first device, slowest first.
    pub kernels: Vec<StepKernel>,
    /// Microseconds of edges and transfers between devices.
    pub edges_us: f64,
    /// Microseconds of other devices and of the host.
    pub other_us: f64,
}

/// The launches of a kernel in a batch.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct StepKernel {
    /// The kernel.
    pub kernel: String,
    /// Launches.
    pub launches: u64,
    /// Microseconds of a launch on average, with the time before it.
    pub us_each: f64,
    /// Microseconds of all launches.
    pub us: f64,
    /// Share of the batch's time.
    pub share: f64,
    /// The limit of the kernel's speed.
    #[schemars(extend("x-extensible-enum" = ["bandwidth", "instructions", "latency", "tensor"]))]
    pub bound: String,
    /// Bytes of weights that all launches read.
    pub weight_bytes: u64,
}

/// Longer names of kernels end with an ellipsis.
const LONGEST: usize = 44;

impl StepTimes {
    fn table(&self) -> Columns {
        use Align::{Left, Right};
        let mut t = Columns::new(&[
            ("kernel", Left),
            ("launches", Right),
            ("µs each", Right),
            ("ms", Right),
            ("share", Right),
            ("bound by", Left),
        ]);
        let mut row = |name: String, launches: String, each: String, us: f64, bound: &str| {
            let share = format!("{:.1} %", 100.0 * us / self.us.max(1e-9));
            let ms = format!("{:.3}", us / 1e3);
            t.row(vec![name, launches, each, ms, share, bound.to_owned()]);
        };
        for k in &self.kernels {
            let name = shortened(&printable(&k.kernel), LONGEST);
            let each = format!("{:.1}", k.us_each);
            row(name, k.launches.to_string(), each, k.us, &k.bound);
        }
        let others = [
            ("between devices", self.edges_us, "edges"),
            ("host and other devices", self.other_us, ""),
        ];
        for (name, us, bound) in others.into_iter().filter(|(_, us, _)| *us > 0.0) {
            row(name.to_owned(), String::new(), String::new(), us, bound);
        }
        t
    }

    fn heading(&self) -> String {
        let what = match self.tokens {
            1 => format!("a token at depth {}", self.cells.saturating_sub(1)),
            n => format!("a prompt of {n} tokens"),
        };
        let error = match self.measured {
            true => format!("±{:.0} % observed on two cards", self.error * 100.0),
            false => format!("±{:.0} % assumed, not measured", self.error * 100.0),
        };
        format!(
            "{what}: {:.2} ms, {} tokens/s ({error})",
            self.us / 1e3,
            speed(self.tps)
        )
    }
}

/// Formats the predicted kernels.
pub(super) fn render(report: &StepReport, columns: usize) -> String {
    let mut out = String::new();
    for times in [&report.token, &report.prompt] {
        let card = printable(&report.card);
        let heading = format!("tpc's kernels on {card}, {}", times.heading());
        let _ = write!(out, "\n{}", wrapped(&heading, columns, 2));
        out.push_str(&times.table().render(columns));
    }
    out
}

/// Formats the predicted speeds in a line.
pub(super) fn brief(report: &StepReport) -> String {
    let of = |t: &StepTimes| format!("{} tokens/s (±{:.0} %)", speed(t.tps), t.error * 100.0);
    format!(
        "{}; prompts {}: tpc's kernels on {}, by a model of each launch; -v lists them",
        of(&report.token),
        of(&report.prompt),
        printable(&report.card)
    )
}
