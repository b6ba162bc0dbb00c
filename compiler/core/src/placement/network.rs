//! Devices in other machines: stated machines, RPC servers, and machines whose devices share the host's memory.

use std::fmt;

use tpc_diag::{Diagnostic, codes};
use tpc_passes::machine::{Link, PairLink, Topology};

/// RPC servers, each with one device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Servers {
    addresses: Vec<String>,
    /// True if the servers' devices are last in the list. llama.cpp puts them last for a tensor split, otherwise first.
    pub last: bool,
    /// Positions of the servers' devices, if a device list states them.
    pub at: Option<Vec<usize>>,
}

impl fmt::Display for Servers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.addresses.join(","))
    }
}

impl Servers {
    /// Parses `HOST:PORT,HOST:PORT`.
    ///
    /// # Errors
    /// Returns TPC0400 for an address without a port, or an empty list.
    pub fn parse(text: &str) -> Result<Servers, Diagnostic> {
        let addresses: Vec<String> = (text.split(','))
            .map(|a| a.trim().to_owned())
            .filter(|a| !a.is_empty())
            .collect();
        let has_port = |a: &String| {
            let parts = a.rsplit_once(':');
            parts.is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
        };
        if addresses.is_empty() || !addresses.iter().all(has_port) {
            let message = format!(
                "`{}` is not a list of servers",
                tpc_diag::suggest::shorten(text)
            );
            let d = Diagnostic::new(&codes::COMMAND_LINE, "--rpc", message);
            return Err(d.help("write an address and a port per server, such as --rpc 10.0.0.2:50052,10.0.0.3:50052"));
        }
        Ok(Servers {
            addresses,
            ..Servers::default()
        })
    }

    /// Returns the number of servers.
    pub fn count(&self) -> usize {
        self.addresses.len()
    }

    /// Returns the positions of the servers' devices in a list of `devices` devices.
    pub fn among(&self, devices: usize) -> Vec<usize> {
        let n = self.count().min(devices);
        if let Some(at) = &self.at {
            return at.iter().copied().filter(|&d| d < devices).collect();
        }
        match self.last {
            true => (devices - n..devices).collect(),
            false => (0..n).collect(),
        }
    }
}

/// Numbers machines from 0 in the order of their first device.
pub(super) fn number<'m>(machines: impl Iterator<Item = &'m mut usize>) {
    let mut known: Vec<usize> = Vec::new();
    for machine in machines {
        let at = known.iter().position(|m| m == machine);
        *machine = at.unwrap_or_else(|| {
            known.push(*machine);
            known.len() - 1
        });
    }
}

/// Puts devices outside the host's machine into machines of their own, and joins machines by a network unless their
/// link is stated. Stated machines stay as they are.
///
/// If devices share their machine's memory, only one is in the host's machine. `network` returns the link between two
/// machines, or `None` if the link is stated.
pub(super) fn join(
    topology: &mut Topology,
    devices: usize,
    servers: &Servers,
    network: &dyn Fn(usize, usize) -> Option<Link>,
) {
    if !topology.machines.is_one() {
        // Without two devices in a machine, the network is the only link.
        if topology.machines.count(devices) == devices && topology.links.is_empty() {
            topology.link = topology.machines.network();
        }
        return;
    }
    let mut away = servers.among(devices);
    let shares = |d: &usize| topology.pool_of(*d).is_some() && !away.contains(d);
    let others: Vec<usize> = (0..devices).filter(shares).skip(1).collect();
    away.extend(others);
    away.sort_unstable();
    let pairs = (0..devices).flat_map(|a| (a + 1..devices).map(move |b| (a, b)));
    for (a, b) in pairs {
        let apart = away.contains(&a) || away.contains(&b);
        let Some(link) = network(a, b).filter(|_| apart) else {
            continue;
        };
        let is = |p: &&mut PairLink| (p.a, p.b) == (a, b) || (p.a, p.b) == (b, a);
        match topology.links.iter_mut().find(is) {
            Some(pair) => pair.link = link,
            None => topology.links.push(PairLink { a, b, link }),
        }
    }
    // A link that all pairs have becomes the common link.
    let count = devices * devices.saturating_sub(1) / 2;
    if let Some(first) = topology.links.first().map(|p| p.link)
        && topology.links.len() == count
        && topology.links.iter().all(|p| p.link == first)
    {
        topology.link = first;
        topology.links.clear();
    }
    // Pairs without an own link keep the common link.
    let far = |&(a, b): &(usize, usize)| away.contains(&a) || away.contains(&b);
    let pairs = (0..devices).flat_map(|a| (a + 1..devices).map(move |b| (a, b)));
    let pairs: Vec<(usize, usize)> = pairs.filter(far).collect();
    let own = |&(a, b): &(usize, usize)| topology.links.iter().any(|p| (p.a, p.b) == (a, b));
    let network = match pairs.first() {
        Some(&(a, b)) if pairs.iter().all(own) => topology.link_between(a, b),
        _ => topology.link,
    };
    if !pairs.is_empty() {
        topology.machines = topology.machines.with_network(network);
    }
    away.into_iter()
        .for_each(|d| topology.machines.put_apart(d));
}

#[cfg(test)]
mod tests {
    use super::*;
    use tpc_passes::machine::{LinkKind, Machines};

    fn away(topology: &Topology, devices: usize) -> Vec<usize> {
        (0..devices).filter(|&d| topology.is_remote(d)).collect()
    }

    #[test]
    fn machines_are_numbered_by_their_first_device() {
        let mut machines = [5, 5, 2, 5, 9];
        number(machines.iter_mut());
        assert_eq!(machines, [0, 0, 1, 0, 2]);
    }

    #[test]
    fn servers_are_addresses_with_ports() {
        let two = Servers::parse("10.0.0.2:50052, box:1").expect("two servers");
        assert_eq!(
            (two.count(), two.to_string().as_str()),
            (2, "10.0.0.2:50052,box:1")
        );
        assert_eq!((two.among(3), two.among(1)), (vec![0, 1], vec![0]));
        let at = Servers {
            at: Some(vec![1, 5]),
            ..two.clone()
        };
        assert_eq!(at.among(3), [1]);
        let last = Servers { last: true, ..two };
        assert_eq!((last.among(3), last.among(1)), (vec![1, 2], vec![0]));
        for bad in ["", ",", "host", "host:", ":1", "host:99999", "a:1,b"] {
            let d = Servers::parse(bad).expect_err(bad);
            assert_eq!((d.code.id, d.help.is_some()), ("TPC0400", true), "{bad}");
        }
    }

    #[test]
    fn machines_are_joined_by_a_network() {
        let one = Servers::parse("a:1").expect("a server");
        let mut t = Topology::default();
        join(&mut t, 3, &one, &|_, _| Some(Link::network()));
        assert_eq!(away(&t, 3), [0]);
        assert_eq!(t.link_between(0, 1).kind, LinkKind::Network);
        assert_eq!(t.link_between(2, 0), Link::network());
        assert_eq!(t.link_between(1, 2), Topology::default().link);
        let mut t = Topology::default();
        join(&mut t, 2, &one, &|_, _| Some(Link::network()));
        assert_eq!((t.link, t.links.len()), (Link::network(), 0));
        let mut t = Topology::default();
        join(&mut t, 2, &one, &|_, _| None);
        assert_eq!((t.link, away(&t, 2)), (Topology::default().link, vec![0]));
        assert_eq!(t.link_between(0, 1), Topology::default().link);
    }

    #[test]
    fn machines_that_share_their_memory_have_one_device_each() {
        let mut t = Topology::default();
        t.devices[0].pool = Some(1e11);
        join(
            &mut t,
            3,
            &Servers::default(),
            &|_, _| Some(Link::network()),
        );
        assert_eq!((away(&t, 3), t.link), (vec![1, 2], Link::network()));
        t.machines = Machines::default();
        let one = Servers::parse("a:1").expect("a server");
        join(&mut t, 3, &one, &|_, _| Some(Link::network()));
        assert_eq!(away(&t, 3), [0, 2]);
    }
}
