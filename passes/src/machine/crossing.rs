use super::{Link, Topology};

/// A copy between places in different machines.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Crossing {
    /// The network link.
    pub link: Link,
    /// The largest number of devices that share a machine's link to the network, as targets or as sources.
    targets: usize,
    /// The number of sources that send their own part if the target assembles the value.
    sources: usize,
    to_host: bool,
}

impl Crossing {
    /// Returns the crossing of a copy between two places, given by the positions of their devices (empty for the host).
    /// `None` if every target is in a machine of the source.
    pub fn of(topology: &Topology, [from, to]: [&[usize]; 2]) -> Option<Crossing> {
        let machines = &topology.machines;
        if machines.is_one() {
            return None;
        }
        let of = |devices: &[usize]| -> Vec<usize> {
            match devices {
                [] => vec![0],
                some => some.iter().map(|&d| machines.of_device(d)).collect(),
            }
        };
        let (sources, targets) = (of(from), of(to));
        let far = |m: &usize, others: &[usize]| !others.contains(m);
        let arriving: Vec<usize> = targets
            .iter()
            .copied()
            .filter(|m| far(m, &sources))
            .collect();
        let link = || match (
            from.first(),
            to.iter().find(|&&d| far(&machines.of_device(d), &sources)),
        ) {
            (Some(&a), Some(&b)) => topology.link_between(a, b),
            _ => machines.network(),
        };
        if to.is_empty() {
            let sending = sources.iter().filter(|m| far(m, &targets)).count();
            return (sending > 0).then(|| Crossing {
                link: link(),
                targets: 1,
                sources: sending,
                to_host: true,
            });
        }
        let incoming = |m: usize| arriving.iter().filter(|&&a| a == m).count();
        let most = arriving.iter().map(|&m| incoming(m)).max()?;
        let mut senders = sources.clone();
        senders.sort_unstable();
        senders.dedup();
        Some(Crossing {
            link: link(),
            targets: most.max(arriving.len().div_ceil(senders.len())),
            sources: 1,
            to_host: false,
        })
    }

    /// Returns the number of devices that share the busiest link to the network.
    pub const fn sharers(&self) -> usize {
        match self.to_host {
            true => self.sources,
            false => self.targets,
        }
    }

    /// Returns the bytes on the busiest link to the network. `parts` has the bytes of the largest part at the source and
    /// at the target.
    pub fn bytes(&self, [sent, received]: [Option<u64>; 2]) -> f64 {
        let (sent, received) = (sent.unwrap_or(0) as f64, received.unwrap_or(0) as f64);
        match self.to_host {
            // The host assembles a split value; a whole value comes from one device.
            true if sent < received => sent * self.sources as f64,
            true => received,
            false => received * self.targets as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Machines, Network, copy_us};
    use super::*;

    #[test]
    fn copies_between_machines_share_the_network() {
        let link = Network::named("25gbe").expect("a network").link;
        let topology = Topology {
            machines: Machines::new(vec![0, 0, 1, 1], link),
            ..Topology::default()
        };
        let us = |ends, parts| copy_us(&topology, ends, parts, false);
        let crossed = |bytes: f64| link.latency_us + bytes / link.bandwidth * 1e6;
        let all = [Some(1000), Some(1000)];
        // Both devices of the second machine fetch the value.
        assert_eq!(us([&[0, 1], &[2, 3]], all), crossed(2000.0));
        assert_eq!(us([&[0], &[2]], all), crossed(1000.0));
        // Each sends its half to the host of the first machine.
        assert_eq!(us([&[2, 3], &[]], [Some(500), Some(1000)]), crossed(1000.0));
        let local = topology.link.latency_us + 1000.0 / topology.link.bandwidth * 1e6;
        assert_eq!(us([&[0], &[1]], all), local);
        assert_eq!(Crossing::of(&topology, [&[], &[0, 1]]), None);
        // Inputs are in every machine.
        assert!(copy_us(&topology, [&[], &[2, 3]], all, true) < 1.0);
    }
}
