//! The NUMA nodes of a machine as devices.

use std::collections::BTreeMap;

use tpc_diag::Diagnostic;
use tpc_passes::machine::{CardClass, DeviceProfile, Link, Topology};

use super::device_item::wrong;
use crate::cards::most_common;

/// The firmware's distance within a node.
const LOCAL: u32 = 10;
/// Linux's distance between nodes if the firmware states none.
const REMOTE: u32 = 20;

/// A NUMA node: a processor socket, or a part of it, with its own memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NumaNode {
    /// The number in the system.
    pub number: u32,
    /// Bytes of memory, if known.
    pub memory: Option<u64>,
    /// The logical CPUs that the process may use, one per physical core.
    pub cores: Vec<usize>,
    /// Distances to nodes by number: relative latencies of the firmware, 10 for the node itself.
    pub distances: BTreeMap<u32, u32>,
}

impl NumaNode {
    /// Returns the distance to another node: the longer one of both ways.
    fn distance(&self, other: &NumaNode) -> u32 {
        let to = |a: &NumaNode, b: &NumaNode| a.distances.get(&b.number).copied();
        let both = to(self, other).max(to(other, self));
        both.unwrap_or(REMOTE)
    }

    /// Returns the profile of a node of a machine with `nodes` nodes. The nodes share the host's bandwidth and cores
    /// evenly.
    fn profile(&self, nodes: usize) -> DeviceProfile {
        let host = Topology::default().host;
        DeviceProfile {
            name: DeviceProfile::NUMA_NODE.into(),
            memory: self.memory.map(|bytes| bytes as f64),
            class: CardClass::NumaNode,
            ..DeviceProfile::host(host.bandwidth / nodes.max(1) as f64)
        }
    }
}

/// Returns the nodes of a device list, with their profiles. `number` is a node's number; `None` for all nodes. If
/// nothing is known of the machine's nodes, a node has no profile.
///
/// # Errors
/// Returns TPC0400 for a node that is not in the machine, and for all nodes of an unknown machine.
pub(super) fn listed(
    number: Option<u32>,
    machine: &[NumaNode],
) -> Result<Vec<(u32, Option<DeviceProfile>)>, Diagnostic> {
    let known = |node: &NumaNode| (node.number, Some(node.profile(machine.len())));
    match number {
        None if machine.is_empty() => Err(wrong("the machine's NUMA nodes are unknown".to_owned())
            .help("number the nodes, such as `numa:0,numa:1`")),
        None => Ok(machine.iter().map(known).collect()),
        Some(n) if machine.is_empty() => Ok(vec![(n, None)]),
        Some(n) => match machine.iter().find(|node| node.number == n) {
            Some(node) => Ok(vec![known(node)]),
            None => Err(absent(n, machine)),
        },
    }
}

/// Reports a node that the machine does not have.
pub fn absent(number: u32, machine: &[NumaNode]) -> Diagnostic {
    let names: Vec<String> = machine
        .iter()
        .map(|n| format!("numa:{}", n.number))
        .collect();
    let d = wrong(format!(
        "this machine has no NUMA node {number} that tpc may use"
    ));
    match names.as_slice() {
        [] => d.help("use `cpu`, or `cpu,cpu` for two devices"),
        [one] => d.help(format!(
            "use {one}, the only node; `cpu,cpu` makes two devices that share it"
        )),
        all => d.help(format!(
            "use `numa` for all nodes, or a list of {}",
            all.join(", ")
        )),
    }
}

/// Checks that a list of devices has each node once, and no other devices. `nodes` are the numbers of the nodes.
///
/// # Errors
/// Returns TPC0400 for other lists.
pub(super) fn check(nodes: &[u32], devices: usize) -> Result<(), Diagnostic> {
    if !nodes.is_empty() && nodes.len() < devices {
        let message = "NUMA nodes cannot be listed with other devices".to_owned();
        return Err(wrong(message).help(
            "list only nodes, such as `numa`, or only other devices; -ngl, -ncmoe and -ot keep weights of cards on the host",
        ));
    }
    let twice = (nodes.iter().enumerate()).find(|(i, n)| nodes[..*i].contains(n));
    match twice {
        None => Ok(()),
        Some((_, n)) => Err(wrong(format!("NUMA node {n} is listed twice")).help(format!(
            "list each node once; several devices that share a memory are `cpu,cpu`; for a single node, write `numa:{n}`"
        ))),
    }
}

/// Sets the links of a machine whose devices are these nodes, in order. The host's memory counts as the first node's.
///
/// A copy within a node has the speed of a copy within the host's memory, divided by the number of nodes. A copy between
/// nodes reads one memory and writes the other. Its bandwidth is `node's bandwidth · 10 / distance`, its latency
/// `latency within a node · distance / 10`.
pub(super) fn join(topology: &mut Topology, listed: &[u32], machine: &[NumaNode]) {
    let of = |n: &u32| machine.iter().find(|node| node.number == *n);
    let Some(nodes) = listed.iter().map(of).collect::<Option<Vec<_>>>() else {
        return;
    };
    let Some(first) = nodes.first() else {
        return;
    };
    let bandwidth = topology.device(0).bandwidth;
    let within = Link {
        bandwidth: topology.host_link.bandwidth * bandwidth / topology.host.bandwidth,
        ..topology.host_link
    };
    let link = |a: &NumaNode, b: &NumaNode| {
        let ratio = f64::from(a.distance(b).max(LOCAL)) / f64::from(LOCAL);
        Link::new(bandwidth / ratio, within.latency_us * ratio)
    };
    let pair = |a: usize, b: usize| link(nodes[a], nodes[b]);
    let pairs: Vec<_> = (0..nodes.len())
        .flat_map(|a| (a + 1..nodes.len()).map(move |b| (a, b)))
        .collect();
    (topology.link, topology.links) = most_common(&pairs, &pair, within);
    let others = nodes.iter().skip(1).map(|node| link(first, node));
    topology.host_link = others.fold(within, Link::bottleneck);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::{DeviceKind, DeviceList, Machine, MachineRequest};
    use crate::topology::TopologyFile;

    const GIB: u64 = 1 << 30;

    fn node(number: u32, distances: &[(u32, u32)]) -> NumaNode {
        NumaNode {
            number,
            memory: Some(u64::from(number + 1) * GIB),
            cores: vec![number as usize],
            distances: distances.iter().copied().collect(),
        }
    }

    fn machine(list: &str, nodes: &[NumaNode]) -> Result<Machine, Diagnostic> {
        let list = DeviceList::parse(list)?;
        let request = MachineRequest {
            list: Some(&list),
            nodes,
            ..MachineRequest::default()
        };
        request.machine()
    }

    #[test]
    fn nodes_have_their_memory_and_a_part_of_the_bandwidth() {
        let nodes = [node(0, &[(0, 10), (2, 21)]), node(2, &[(0, 21), (2, 10)])];
        let m = machine("numa", &nodes).expect("two nodes");
        let names: Vec<&str> = m.devices.iter().map(|d| d.name.as_str()).collect();
        assert_eq!(names, ["numa:0#0", "numa:2#1"]);
        let kinds: Vec<DeviceKind> = m.devices.iter().map(|d| d.kind).collect();
        assert_eq!(kinds, [DeviceKind::Numa(0), DeviceKind::Numa(2)]);
        let host = Topology::default().host.bandwidth;
        for (device, gib) in m.topology.devices.iter().zip([1.0, 3.0]) {
            assert_eq!(device.bandwidth, host / 2.0);
            assert_eq!(device.memory, Some(gib * GIB as f64));
            assert_eq!(device.reserve, 0.0);
        }
        let link = Link::new(host / 2.0 / 2.1, 4.2);
        assert_eq!((m.topology.link, m.topology.host_link), (link, link));
        assert!(m.topology.machines.is_one() && m.notes.is_empty());
        let one = machine("NUMA2", &nodes).expect("one node");
        assert_eq!(one.devices[0].kind, DeviceKind::Numa(2));
        assert_eq!(one.topology.device(0).bandwidth, host / 2.0);
        assert_eq!(one.topology.host_link, Link::new(host / 4.0, 2.0));
    }

    #[test]
    fn a_machine_with_one_node_has_the_speed_of_the_processor() {
        let m = machine("numa", &[node(0, &[])]).expect("a node").topology;
        let cpu = machine("cpu", &[]).expect("the processor").topology;
        assert_eq!(m.device(0).bandwidth, cpu.device(0).bandwidth);
        assert_eq!((m.link, m.host_link), (cpu.link, cpu.host_link));
    }

    #[test]
    fn distances_are_the_longer_way_and_have_a_default() {
        let nodes = [
            node(0, &[(1, 16)]),
            node(1, &[(0, 12), (2, 0)]),
            node(2, &[]),
        ];
        let t = machine("numa", &nodes).expect("three nodes").topology;
        let bandwidth = t.device(0).bandwidth;
        assert_eq!(t.link_between(0, 1), Link::new(bandwidth / 1.6, 3.2));
        assert_eq!(t.link_between(0, 2), Link::new(bandwidth / 2.0, 4.0));
        assert_eq!(t.link_between(1, 2), Link::new(bandwidth, 2.0));
    }

    #[test]
    fn a_topology_file_states_the_speeds_of_nodes() {
        let file = "(devices: [(name: \"s\", memory: 8e9, bandwidth: 2e11, flops: 2e12, count: 2)],
                     link: (bandwidth: 4e10, latency_us: 1))";
        let file = TopologyFile::from_ron(file).expect("a file");
        let list = DeviceList::parse("numa").expect("a list");
        let nodes = [node(0, &[]), node(1, &[])];
        let request = MachineRequest {
            list: Some(&list),
            file: Some(&file),
            nodes: &nodes,
            ..MachineRequest::default()
        };
        let m = request.machine().expect("a machine");
        assert_eq!(m.devices[1].kind, DeviceKind::Numa(1));
        assert_eq!(m.topology.device(1).bandwidth, 2e11);
        assert_eq!(m.topology.link, Link::new(4e10, 1.0));
    }

    #[test]
    fn wrong_nodes_are_refused_with_a_cure() {
        let nodes = [node(0, &[]), node(1, &[])];
        for (list, nodes, message, cure) in [
            (
                "numa:9",
                &nodes[..],
                "this machine has no NUMA node 9 that tpc may use",
                "use `numa` for all nodes, or a list of numa:0, numa:1",
            ),
            (
                "numa:1",
                &nodes[..1],
                "this machine has no NUMA node 1 that tpc may use",
                "use numa:0, the only node; `cpu,cpu` makes two devices that share it",
            ),
            (
                "numa:x",
                &nodes,
                "`numa:x` lacks the number of the NUMA node",
                "write for example `numa:0`, or `numa` for all nodes",
            ),
            (
                "numa",
                &[],
                "the machine's NUMA nodes are unknown",
                "number the nodes, such as `numa:0,numa:1`",
            ),
            (
                "numa,numa:1",
                &nodes,
                "NUMA node 1 is listed twice",
                "list each node once; several devices that share a memory are `cpu,cpu`; for a single node, write \
                 `numa:1`",
            ),
            (
                "numa,cpu",
                &nodes,
                "NUMA nodes cannot be listed with other devices",
                "list only nodes, such as `numa`, or only other devices; -ngl, -ncmoe and -ot keep weights of cards on \
                 the host",
            ),
        ] {
            let d = machine(list, nodes).expect_err(list);
            assert_eq!(
                (d.code.id, d.message.to_string().as_str()),
                ("TPC0400", message)
            );
            assert_eq!(d.help, Some(cure.into()), "{list}");
        }
    }
}
