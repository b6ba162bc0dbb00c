use std::collections::BTreeMap;

use super::card::{Card, CardLink};
use super::constants::{
    FULL_LAUNCH_US, HOST_US, PROGRAMMATIC_LAUNCH_US, SERIAL_LAUNCH_US, STEP_US,
};
use super::table::{KernelTable, NoCounts};
use super::time::{Bound, KernelTime, kernel_time};
use crate::executor::{PlannedKernel, PlannedNode};

/// The launches of a kernel on the first device.
#[derive(Clone, Debug, PartialEq)]
pub struct PredictedKernel {
    /// The template with its arguments.
    pub kernel: String,
    /// The launches of a step.
    pub launches: usize,
    /// The microseconds of all launches, with the time before each.
    pub us: f64,
    /// The bytes of weights that all launches read.
    pub weight_bytes: u64,
    /// The limit of most of the time.
    pub bound: Bound,
}

/// The predicted time of a step.
#[derive(Clone, Debug, PartialEq)]
pub struct StepPrediction {
    /// The kernels of the first device, slowest first.
    pub kernels: Vec<PredictedKernel>,
    /// Microseconds of edges between devices, and of transfers between them.
    pub edges_us: f64,
    /// Microseconds of other devices, of ops on the host, and of the host before and after the step.
    pub other_us: f64,
    /// Microseconds of the whole step.
    pub us: f64,
}

/// The start of launches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Launching {
    /// A graph with programmatic edges, if the card supports them.
    Programmatic,
    /// A graph with full edges.
    Full,
}

#[derive(Default)]
struct Sums {
    kernels: BTreeMap<String, (PredictedKernel, [f64; Bound::ALL.len()])>,
}

impl Sums {
    fn add(&mut self, kernel: &PlannedKernel, time: KernelTime, us: f64) {
        let new = || PredictedKernel {
            kernel: kernel.name.clone(),
            launches: 0,
            us: 0.0,
            weight_bytes: 0,
            bound: time.bound,
        };
        let found = self.kernels.entry(kernel.name.clone());
        let (sum, bounds) = found.or_insert_with(|| (new(), [0.0; Bound::ALL.len()]));
        sum.launches += 1;
        sum.us += us;
        sum.weight_bytes += kernel.weight_bytes;
        bounds[time.bound as usize] += us;
        let most = Bound::ALL.into_iter().zip(*bounds);
        let most = most.max_by(|a, b| a.1.total_cmp(&b.1));
        sum.bound = most.map_or(time.bound, |(bound, _)| bound);
    }

    fn kernels(self) -> Vec<PredictedKernel> {
        let mut out: Vec<PredictedKernel> = self.kernels.into_values().map(|(k, _)| k).collect();
        out.sort_by(|a, b| b.us.total_cmp(&a.us));
        out
    }
}

/// Predicts the time of each kernel, if each launch waits for the end of the previous launch.
///
/// # Errors
///
/// Returns an error if the table has no counts for the card's target.
pub fn predict_serial(
    nodes: &[PlannedNode],
    card: &Card,
    table: &KernelTable,
) -> Result<Vec<PredictedKernel>, NoCounts> {
    let mut sums = Sums::default();
    let kernels = nodes.iter().filter_map(|n| n.kernel.as_ref());
    for (_, kernel) in kernels.filter(|(device, _)| *device == 0) {
        let time = kernel_time(kernel, card, table)?;
        sums.add(kernel, time, SERIAL_LAUNCH_US + time.us);
    }
    Ok(sums.kernels())
}

struct Timeline<'a> {
    nodes: &'a [PlannedNode],
    cards: &'a [Card],
    link: &'a dyn Fn(usize, usize) -> CardLink,
    launching: Launching,
    ends: Vec<f64>,
    /// The end of each device's last kernel.
    busy: Vec<f64>,
}

impl Timeline<'_> {
    fn device(&self, node: usize) -> Option<usize> {
        self.nodes[node].kernel.as_ref().map(|(device, _)| *device)
    }

    /// Returns the microseconds of the launch of a kernel on a device after other nodes.
    fn launch_us(&self, device: usize, after: &[usize]) -> f64 {
        let alone = match after {
            [before] => self.device(*before) == Some(device),
            _ => false,
        };
        let early = self.launching == Launching::Programmatic && self.cards[device].starts_early();
        match alone && early {
            true => PROGRAMMATIC_LAUNCH_US,
            false => FULL_LAUNCH_US,
        }
    }

    /// Returns the slowest link from the devices of other nodes to a device, and the number of these devices.
    fn crossing(&self, device: usize, after: &[usize]) -> Option<(CardLink, usize)> {
        let others = after.iter().filter_map(|n| self.device(*n));
        let others: Vec<usize> = others.filter(|d| *d != device).collect();
        let links = others.iter().map(|d| (self.link)(*d, device));
        let slowest = links.reduce(|a, b| CardLink {
            bandwidth: a.bandwidth.min(b.bandwidth),
            edge_us: a.edge_us.max(b.edge_us),
        });
        slowest.map(|link| (link, others.len()))
    }
}

/// Predicts the time of a step. `link` returns the link between two devices.
///
/// A kernel starts after the nodes that it waits for. If one of them is on another device, it also waits for an edge
/// between the devices, and reads a result of its size from each of them.
///
/// # Errors
///
/// Returns an error if the table has no counts for a card's target.
pub fn predict(
    nodes: &[PlannedNode],
    cards: &[Card],
    link: &dyn Fn(usize, usize) -> CardLink,
    (launching, table): (Launching, &KernelTable),
) -> Result<StepPrediction, NoCounts> {
    let mut line = Timeline {
        nodes,
        cards,
        link,
        launching,
        ends: Vec::with_capacity(nodes.len()),
        busy: vec![0.0; cards.len()],
    };
    let (mut sums, mut edges_us) = (Sums::default(), 0.0);
    for node in nodes {
        let ready = node.after.iter().map(|n| line.ends[*n]).fold(0.0, f64::max);
        let Some((device, kernel)) = &node.kernel else {
            line.ends.push(ready + HOST_US);
            continue;
        };
        let Some(card) = cards.get(*device) else {
            line.ends.push(ready);
            continue;
        };
        let time = kernel_time(kernel, card, table)?;
        let own = line.launch_us(*device, &node.after) + time.us;
        let mut end = ready.max(line.busy[*device]) + own;
        if let Some((link, others)) = line.crossing(*device, &node.after) {
            let read = kernel.results.iter().map(|t| t.bytes).min().unwrap_or(0);
            let transfer = read as f64 * others as f64 / link.bandwidth * 1e6;
            end += link.edge_us + transfer;
            edges_us += if *device == 0 {
                link.edge_us + transfer
            } else {
                0.0
            };
        }
        line.busy[*device] = end;
        line.ends.push(end);
        if *device == 0 {
            sums.add(kernel, time, own);
        }
    }
    let kernels = sums.kernels();
    let us = line.ends.iter().copied().fold(0.0, f64::max) + STEP_US;
    let known: f64 = kernels.iter().map(|k| k.us).sum::<f64>() + edges_us;
    Ok(StepPrediction {
        kernels,
        edges_us,
        other_us: (us - known).max(0.0),
        us,
    })
}
