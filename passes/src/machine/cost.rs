//! The cost model without engine constants: a roofline for ops, latency and bandwidth for transfers.

use tpc_ir::op::Work;

use super::topology::{DeviceProfile, Topology};
use super::{Crossing, Link};

/// Returns the roofline time on a device in microseconds: the maximum of arithmetic and memory time.
pub fn roofline_us(work: Work, d: &DeviceProfile) -> f64 {
    (work.flops / d.flops).max(work.bytes / d.bandwidth) * 1e6
}

/// Returns the microseconds of a copy between two places, given by the positions of their devices (empty for the host).
/// `parts` has the bytes of the largest part at each place.
///
/// Within a machine each device has its own link, so the largest part determines the time. Between machines, all parts
/// share the network. A part that stays on its device is free. Inputs of the batch are sent together, so one input adds
/// no latency; every machine has the inputs.
pub fn copy_us(
    topology: &Topology,
    ends: [&[usize]; 2],
    parts: [Option<u64>; 2],
    of_input: bool,
) -> f64 {
    if ends[0] == ends[1] && parts[1] <= parts[0] {
        return 0.0;
    }
    let local = if ends.iter().any(|devices| devices.is_empty()) {
        topology.host_link
    } else {
        topology.link
    };
    let bytes = parts[0].min(parts[1]).unwrap_or(0) as f64;
    if of_input {
        return bytes / local.bandwidth * 1e6;
    }
    let us = |link: Link, bytes: f64| link.latency_us + bytes / link.bandwidth * 1e6;
    match Crossing::of(topology, ends) {
        None => us(local, bytes),
        Some(crossing) => us(crossing.link, crossing.bytes(parts)),
    }
}
