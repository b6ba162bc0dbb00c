use super::card::Card;
use super::constants::{CYCLES_PER_INSTRUCTION, ISSUE_SHARE, LOAD_US, START_US};
use super::residency::resident_blocks;
use super::table::{KernelTable, NoCounts};
use super::work::Work;
use crate::executor::PlannedKernel;

/// The schedulers of a multiprocessor.
const SCHEDULERS: f64 = 4.0;

/// The limit of a kernel's speed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bound {
    /// Reading from memory.
    Bandwidth,
    /// The instructions that schedulers issue.
    Instructions,
    /// Instructions and loads of a warp that wait for each other.
    Latency,
    /// Tensor instructions.
    Tensor,
}

impl Bound {
    /// All limits.
    pub const ALL: [Bound; 4] = [
        Bound::Bandwidth,
        Bound::Instructions,
        Bound::Latency,
        Bound::Tensor,
    ];

    /// Returns the name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Bound::Bandwidth => "bandwidth",
            Bound::Instructions => "instructions",
            Bound::Latency => "latency",
            Bound::Tensor => "tensor",
        }
    }
}

/// The predicted time of a kernel, without its launch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KernelTime {
    /// Microseconds.
    pub us: f64,
    /// The limit.
    pub bound: Bound,
}

/// Predicts the time of a kernel on a card: the larger of the times for its bytes and for its waves of blocks.
///
/// # Errors
///
/// Returns an error if the table has no counts for the card's target.
pub fn kernel_time(
    kernel: &PlannedKernel,
    card: &Card,
    table: &KernelTable,
) -> Result<KernelTime, NoCounts> {
    let counts = table.of(card.target, &kernel.name)?;
    let work = Work::of(kernel, &counts);
    let cycles = |n: f64| n / card.clock * 1e6;
    let looped = work.trips * f64::from(counts.code.each);
    let instructions = f64::from(counts.code.once) / work.parts + looped;
    let alone = cycles(instructions * CYCLES_PER_INSTRUCTION);
    // A tile takes the longer of its instructions and its loads, which begin one tile earlier.
    let tile = cycles(looped * CYCLES_PER_INSTRUCTION) / work.ahead.max(1.0);
    let late = (LOAD_US - tile).max(0.0) * (work.ahead - 1.0).max(0.0);
    let first = if work.ahead > 0.0 { LOAD_US } else { 0.0 };
    let chain = alone + work.waits * LOAD_US + first + late;
    let multiprocessors = f64::from(card.multiprocessors.max(1));
    let of_multiprocessor = |blocks: f64| {
        let warps = blocks * work.warps;
        let issue = cycles(warps * instructions / SCHEDULERS / ISSUE_SHARE);
        let tensor = warps * work.trips * work.tensor / (card.tensor / multiprocessors) * 1e6;
        let all = [
            (issue, Bound::Instructions),
            (tensor, Bound::Tensor),
            (chain, Bound::Latency),
        ];
        let first = all.into_iter().max_by(|a, b| a.0.total_cmp(&b.0));
        first.unwrap_or((chain, Bound::Latency))
    };
    let resident = f64::from(resident_blocks(
        card,
        &counts,
        kernel.threads,
        kernel.shared_bytes,
    ));
    let wave = resident * multiprocessors;
    let full = (work.blocks / wave).floor();
    let (each, bound) = of_multiprocessor(resident);
    let rest = ((work.blocks - full * wave) / multiprocessors).ceil();
    let (last, last_bound) = of_multiprocessor(rest);
    let mut us = START_US + full * each + (work.idle / wave).floor() * START_US;
    if rest > 0.0 {
        us += last;
    }
    let read = START_US + work.bytes / card.bandwidth * 1e6;
    Ok(match read > us {
        true => KernelTime {
            us: read,
            bound: Bound::Bandwidth,
        },
        false => KernelTime {
            us,
            bound: if full > 0.0 { bound } else { last_bound },
        },
    })
}
