//! The cost model without engine constants: a roofline for ops, latency and bandwidth for transfers.

use tpc_ir::Place;
use tpc_ir::op::{Collective, Work};

use super::topology::{DeviceProfile, Link, Topology};

/// Returns the roofline time on a device in microseconds: the maximum of arithmetic and memory time.
pub fn roofline_us(work: Work, d: &DeviceProfile) -> f64 {
    (work.flops / d.flops).max(work.bytes / d.bandwidth) * 1e6
}

/// Returns the microseconds of a ring all-reduce of `bytes` over `n` devices.
pub fn all_reduce_us(link: Link, n: usize, bytes: f64) -> f64 {
    if n < 2 {
        return 0.0;
    }
    let n = n as f64;
    link.latency_us + 2.0 * (n - 1.0) / n * bytes / link.bandwidth * 1e6
}

/// Returns the microseconds of a collective over `n` devices, for a whole value of `bytes`. An all-reduce counts as a
/// reduce-scatter plus an all-gather; each moves half of the bytes with the same latency.
pub fn collective_us(collective: Collective, link: Link, n: usize, bytes: f64) -> f64 {
    match collective {
        Collective::AllReduce => all_reduce_us(link, n, bytes),
        Collective::AllGather | Collective::ReduceScatter | Collective::AllToAll => {
            all_reduce_us(link, n, bytes / 2.0)
        }
    }
}

/// Returns the microseconds of a copy between two places. `parts` has the bytes of the largest part at each place. Each
/// device has its own host link, so the largest part determines the time. A part that stays on its device is free.
/// Inputs of the batch are sent together, so one input adds no latency.
pub fn copy_us(
    topology: &Topology,
    [from, to]: [Place; 2],
    parts: [Option<u64>; 2],
    of_input: bool,
) -> f64 {
    if from == to && parts[1] <= parts[0] {
        return 0.0;
    }
    let link = if [from, to].contains(&Place::Host) {
        topology.host_link
    } else {
        topology.link
    };
    let bytes = parts[0].min(parts[1]).unwrap_or(0) as f64;
    let latency = if of_input { 0.0 } else { link.latency_us };
    latency + bytes / link.bandwidth * 1e6
}
