use tpc_ir::op::Collective;

use super::{EngineProfile, Link, LinkKind, Topology};

/// Devices that reduce together in a ring.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ring {
    /// The slowest link between neighbours.
    pub link: Link,
    /// The number of devices.
    pub n: usize,
    /// True if devices synchronise through the host.
    pub waits: bool,
}

impl Ring {
    /// Returns the ring of these devices.
    pub fn of(topology: &Topology, devices: &[usize]) -> Ring {
        Ring {
            link: topology.slowest_ring_link(devices),
            n: devices.len(),
            waits: devices
                .iter()
                .any(|&d| topology.device(d).class.waits_on_host()),
        }
    }
}

impl EngineProfile {
    /// Returns the microseconds of a collective over the ring. `bytes` has the meaning as in
    /// [`collective_us`](super::collective_us).
    pub fn collective_us(&self, collective: Collective, ring: Ring, bytes: f64) -> f64 {
        match collective {
            Collective::AllReduce => self.all_reduce_us(ring, bytes),
            Collective::AllGather | Collective::ReduceScatter | Collective::AllToAll => {
                self.all_reduce_us(ring, bytes / 2.0)
            }
        }
    }

    /// Returns the microseconds of an all-reduce of `bytes`.
    pub fn all_reduce_us(&self, ring: Ring, bytes: f64) -> f64 {
        let Ring { link, n, waits } = ring;
        if n < 2 {
            return 0.0;
        }
        let growth = match link.kind {
            LinkKind::NvSwitch => 0.0,
            _ => self.reduction_growth,
        };
        let n = n as f64;
        let old = if waits { self.old_reductions } else { 1.0 };
        let latency = old * self.reduction_latencies * link.latency_us * (n - 1.0).powf(growth);
        latency + 2.0 * (n - 1.0) / n * bytes / (link.bandwidth * self.link_share) * 1e6
    }
}
