//! The cost of collectives: a ring of devices in each machine, and an exchange between machines.
//!
//! Over several machines, a collective has three steps: it reduces inside each machine, sends one value per ordered pair
//! of machines, and broadcasts inside each machine. All devices of a machine share its link to the network.

use tpc_ir::op::Collective;

use super::{EngineProfile, Link, Ring, Topology};

/// The exchange of a collective between machines.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Exchange {
    /// The slowest network link between two machines.
    pub link: Link,
    /// The number of machines, at least 2.
    pub machines: usize,
}

impl Exchange {
    /// Returns the bytes that each machine sends, for a whole value of `bytes`: one message per other machine. An
    /// all-reduce sends the machine's sum, the others send parts.
    pub fn sent(&self, collective: Collective, bytes: f64) -> f64 {
        let n = self.machines as f64;
        let message = match collective {
            Collective::AllReduce => bytes,
            Collective::AllGather | Collective::ReduceScatter => bytes / n,
            Collective::AllToAll => bytes / (n * n),
        };
        (n - 1.0) * message
    }
}

/// The participants of a collective.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Participants {
    /// The slowest ring of a machine.
    pub ring: Ring,
    /// The exchange between machines; `None` if all devices are in one machine.
    pub exchange: Option<Exchange>,
}

impl Participants {
    /// Returns the participants at these positions.
    pub fn of(topology: &Topology, devices: &[usize]) -> Participants {
        if topology.machines.is_one() {
            return Participants {
                ring: Ring::of(topology, devices),
                exchange: None,
            };
        }
        let machines = topology.machines.group(devices);
        let rings = machines.iter().map(|own| Ring::of(topology, own));
        let ring = rings.reduce(Ring::slower);
        let firsts: Vec<usize> = machines.iter().map(|own| own[0]).collect();
        Participants {
            ring: ring.unwrap_or_else(|| Ring::of(topology, devices)),
            exchange: (firsts.len() > 1).then(|| Exchange {
                link: topology.slowest_ring_link(&firsts),
                machines: firsts.len(),
            }),
        }
    }

    /// Returns the microseconds of a collective without an engine's constants, for a whole value of `bytes`.
    pub fn roofline_us(&self, collective: Collective, bytes: f64) -> f64 {
        let between =
            |x: Exchange| x.link.latency_us + x.sent(collective, bytes) / x.link.bandwidth * 1e6;
        self.ring.roofline_us(collective, bytes) + self.exchange.map_or(0.0, between)
    }
}

impl EngineProfile {
    /// Returns the microseconds of a collective, for a whole value of `bytes`.
    pub fn collective_us(
        &self,
        collective: Collective,
        participants: Participants,
        bytes: f64,
    ) -> f64 {
        let Participants { ring, exchange } = participants;
        let between = |x: Exchange| {
            let others = x.machines as f64 - 1.0;
            let growth = others.powf(self.reduction_growth);
            let latency = self.reduction_latencies * x.link.latency_us * growth;
            latency + x.sent(collective, bytes) / (x.link.bandwidth * self.link_share) * 1e6
        };
        self.ring_us(collective, ring, bytes) + exchange.map_or(0.0, between)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{LinkKind, Machines, Network};
    use super::*;

    fn cluster(machines: usize, each: usize, network: &str) -> (Topology, Vec<usize>) {
        let n = machines * each;
        let network = Network::named(network).expect("a network").link;
        let topology = Topology {
            link: Link::of(LinkKind::NvSwitch, 450e9),
            machines: Machines::new((0..n).map(|d| d / each).collect(), network),
            ..Topology::default()
        };
        (topology, (0..n).collect())
    }

    #[test]
    fn devices_of_a_machine_share_its_network() {
        let (topology, all) = cluster(2, 8, "25gbe");
        let p = Participants::of(&topology, &all);
        assert_eq!((p.ring.n, p.ring.link.kind), (8, LinkKind::NvSwitch));
        assert_eq!(p.exchange.map(|x| x.machines), Some(2));
        let bytes = 1e6;
        let inside = 8.0 + 2.0 * 7.0 / 8.0 * bytes / 450e9 * 1e6;
        let between = 40.0 + bytes / (25e9 / 8.0) * 1e6;
        let us = p.roofline_us(Collective::AllReduce, bytes);
        assert!((us - inside - between).abs() < 1e-9, "{us}");
        // More machines send one value to each other machine.
        let (topology, all) = cluster(8, 8, "25gbe");
        let p = Participants::of(&topology, &all);
        let sent = |c| p.exchange.map(|x| x.sent(c, bytes));
        assert_eq!(sent(Collective::AllReduce), Some(7.0 * bytes));
        assert_eq!(sent(Collective::AllGather), Some(7.0 / 8.0 * bytes));
        // Devices of one machine do not use the network.
        assert_eq!(Participants::of(&topology, &all[8..16]).exchange, None);
    }

    #[test]
    fn two_machines_of_one_device_exchange_as_a_ring_of_two() {
        let (topology, all) = cluster(2, 1, "10gbe");
        let p = Participants::of(&topology, &all);
        let ring = Ring {
            link: Link::network(),
            n: 2,
            waits: false,
        };
        for c in [Collective::AllReduce, Collective::AllGather] {
            let us = p.roofline_us(c, 4096.0);
            assert!((us - ring.roofline_us(c, 4096.0)).abs() < 1e-9);
        }
    }
}
