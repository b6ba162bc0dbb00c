use tpc_ir::op::Collective;

use super::{EngineProfile, Link, LinkKind, Topology};

/// Devices of one machine that reduce together in a ring.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ring {
    /// The slowest link between neighbours.
    pub link: Link,
    /// The number of devices.
    pub n: usize,
    /// True if devices synchronise through the host.
    pub waits: bool,
}

/// Returns the bytes of an all-reduce that takes as long as a collective for a whole value of `bytes`. An all-reduce is
/// a reduce-scatter and an all-gather; each moves half of the bytes with the same latency.
fn reduced(collective: Collective, bytes: f64) -> f64 {
    match collective {
        Collective::AllReduce => bytes,
        Collective::AllGather | Collective::ReduceScatter | Collective::AllToAll => bytes / 2.0,
    }
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

    /// Returns a ring that is as slow as the slower of two rings.
    #[must_use]
    pub fn slower(self, other: Ring) -> Ring {
        // One device needs no link.
        let link = match (self.n > 1, other.n > 1) {
            (true, true) => self.link.bottleneck(other.link),
            (false, true) => other.link,
            _ => self.link,
        };
        Ring {
            link,
            n: self.n.max(other.n),
            waits: self.waits || other.waits,
        }
    }

    /// Returns the microseconds of a collective without an engine's constants, for a whole value of `bytes`.
    pub fn roofline_us(&self, collective: Collective, bytes: f64) -> f64 {
        if self.n < 2 {
            return 0.0;
        }
        let n = self.n as f64;
        let bytes = 2.0 * (n - 1.0) / n * reduced(collective, bytes);
        self.link.latency_us + bytes / self.link.bandwidth * 1e6
    }
}

impl EngineProfile {
    /// Returns the microseconds of a collective over the ring, for a whole value of `bytes`.
    pub fn ring_us(&self, collective: Collective, ring: Ring, bytes: f64) -> f64 {
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
        let bytes = 2.0 * (n - 1.0) / n * reduced(collective, bytes);
        latency + bytes / (link.bandwidth * self.link_share) * 1e6
    }
}
