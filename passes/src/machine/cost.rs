//! The time of an op by a roofline, and of a transfer by latency and bandwidth.

use tpc_ir::{DType, Op, Place};

use super::topology::{DeviceProfile, Link, Topology};

/// Work of one op on one device.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Work {
    /// Operations.
    pub flops: f64,
    /// Bytes read and written.
    pub bytes: f64,
}

impl Work {
    /// Microseconds on a device.
    pub fn time_us(self, d: &DeviceProfile) -> f64 {
        (self.flops / d.flops).max(self.bytes / d.bandwidth) * 1e6
    }
}

/// Bytes per element of a type, block overhead included.
pub fn element_bytes(dtype: DType) -> f64 {
    dtype.block_bytes() as f64 / dtype.block_len() as f64
}

/// Microseconds of an all-reduce of `bytes` over `n` devices in a ring.
pub fn all_reduce_us(link: Link, n: usize, bytes: f64) -> f64 {
    if n < 2 {
        return 0.0;
    }
    let n = n as f64;
    link.latency_us + 2.0 * (n - 1.0) / n * bytes / link.bandwidth * 1e6
}

/// Microseconds of a collective over `n` devices whose operand has `bytes` over all of them. An all-reduce is a
/// reduce-scatter and an all-gather in one, so that either alone moves half as much after the same latency.
pub fn collective_us(op: &Op, link: Link, n: usize, bytes: f64) -> f64 {
    match op {
        Op::AllReduce(_) => all_reduce_us(link, n, bytes),
        _ => all_reduce_us(link, n, bytes / 2.0),
    }
}

/// Microseconds of a copy between two places whose largest parts have so many bytes. Devices have a link to the host
/// each, so that the largest part counts; a part that stays on its device costs nothing. Inputs of the batch go out
/// together, and no latency is counted for one of them.
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
