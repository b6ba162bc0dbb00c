//! Bandwidths and latencies.

use std::time::Instant;

use tpc_cuda::{Driver, DriverError, Graph, Memory, Side};

use super::check::Bench;
use super::memory::{allocate, copies, device, large};
use super::report::{CheckError, Finding};

type Result = std::result::Result<Finding, CheckError>;

/// The name of a bandwidth in 10^9 bytes per second.
pub(super) const BANDWIDTH: &str = "bandwidth_gb_per_s";
/// The name of a latency in microseconds.
pub(super) const LATENCY: &str = "latency_us";

/// Launches that are timed. The best one counts.
const RUNS: usize = 3;
/// Copies in the graph that measures a latency.
const NODES: usize = 200;
/// The bytes of such a copy.
const SMALL: u64 = 256;

/// The lowest bandwidth of a card's link without a warning, in bytes per second.
const SLOW: f64 = 1e9;
/// The same limit for emulated devices, which share the host's memory.
const SLOW_EMULATED: f64 = 30e6;

/// Returns the shortest time of a launch in seconds, after one launch for warming up.
pub(super) fn shortest<D: Driver>(
    driver: &mut D,
    graph: Graph,
) -> std::result::Result<f64, DriverError> {
    let mut best = f64::INFINITY;
    for run in 0..=RUNS {
        let start = Instant::now();
        driver.launch(graph)?;
        driver.synchronize()?;
        if run > 0 {
            best = best.min(start.elapsed().as_secs_f64());
        }
    }
    // The clock of some systems is coarse.
    Ok(best.max(1e-9))
}

/// Returns the seconds of a graph that copies `bytes` bytes between two memories, `rounds` times in sequence.
fn time<D: Driver>(
    driver: &mut D,
    path: [Side; 2],
    bytes: u64,
    rounds: usize,
) -> std::result::Result<f64, DriverError> {
    let mut memories: Vec<Memory> = Vec::new();
    for side in path {
        memories.push(allocate(driver, side, bytes as usize)?);
    }
    let graph = copies(driver, &memories, bytes, rounds)?;
    let seconds = shortest(driver, graph)?;
    driver.discard(graph)?;
    for memory in memories {
        driver.free(memory)?;
    }
    Ok(seconds)
}

fn bandwidth<D: Driver>(
    bench: &mut Bench<D>,
    path: [Side; 2],
) -> std::result::Result<f64, DriverError> {
    let bytes = large(bench);
    let seconds = time(bench.driver()?, path, bytes, 1)?;
    Ok(bytes as f64 / seconds)
}

fn latency<D: Driver>(
    bench: &mut Bench<D>,
    path: [Side; 2],
) -> std::result::Result<f64, DriverError> {
    Ok(time(bench.driver()?, path, SMALL, NODES)? / NODES as f64 * 1e6)
}

/// Returns the finding about a bandwidth. A slow link is a warning.
fn judged(rate: f64, emulated: bool, more: &str, cure: &str) -> Finding {
    let digits = if rate < SLOW { 3 } else { 1 };
    let text = format!("{:.digits$} GB/s{more}", rate / 1e9);
    let slow = match emulated {
        true => SLOW_EMULATED,
        false => SLOW,
    };
    let finding = match rate < slow {
        true => Finding::warning(format!("{text}: slow"), cure),
        false => Finding::ok(text),
    };
    finding.with(BANDWIDTH, rate / 1e9)
}

const SLOT: &str = "check the slot's lanes (`nvidia-smi --query-gpu=pcie.link.gen.current,pcie.link.width.current --format=csv`)";

fn host_link<D: Driver>(bench: &mut Bench<D>, path: [Side; 2]) -> Result {
    let rate = bandwidth(bench, path)?;
    let latency = latency(bench, path)?;
    let more = format!(", {latency:.2} µs");
    let finding = judged(rate, bench.setup.emulated, &more, SLOT);
    Ok(finding.with(LATENCY, latency))
}

pub(super) fn to_device<D: Driver>(bench: &mut Bench<D>, on: &[usize]) -> Result {
    host_link(bench, [Side::Host, Side::Device(device(on[0]))])
}

pub(super) fn to_host<D: Driver>(bench: &mut Bench<D>, on: &[usize]) -> Result {
    host_link(bench, [Side::Device(device(on[0])), Side::Host])
}

/// Measures copies within a device. A copy reads and writes each byte.
pub(super) fn within<D: Driver>(bench: &mut Bench<D>, on: &[usize]) -> Result {
    let rate = 2.0 * bandwidth(bench, [Side::Device(device(on[0])); 2])?;
    let cure = "end other processes on the card";
    Ok(judged(
        rate,
        bench.setup.emulated,
        " read and written",
        cure,
    ))
}

pub(super) fn launch<D: Driver>(bench: &mut Bench<D>, on: &[usize]) -> Result {
    let latency = latency(bench, [Side::Device(device(on[0])); 2])?;
    let text = format!("{latency:.2} µs per node of a graph of {NODES} copies");
    Ok(Finding::ok(text).with(LATENCY, latency))
}

pub(super) fn link<D: Driver>(bench: &mut Bench<D>, on: &[usize]) -> Result {
    let path = [on[0], on[1]].map(|d| Side::Device(device(d)));
    let [from, to] = [on[0], on[1]].map(device);
    match bench.driver()?.grant(to, from) {
        Ok(()) | Err(DriverError::NoPeerAccess { .. }) => {}
        Err(e) => return Err(e.into()),
    }
    let rate = bandwidth(bench, path)?;
    let latency = latency(bench, path)?;
    let cure = "`nvidia-smi topo -m` shows the link; move the cards to slots with more lanes";
    let more = format!(", {latency:.2} µs");
    let finding = judged(rate, bench.setup.emulated, &more, cure);
    Ok(finding.with(LATENCY, latency))
}
