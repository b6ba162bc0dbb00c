use schemars::JsonSchema;
use serde::Serialize;
use tpc_passes::machine::{CardClass, DeviceProfile, Link, Network, PairLink, Topology};

use crate::placement::Placement;

/// The machine of a plan. Memory is in bytes, bandwidth in bytes per second, arithmetic in operations per second.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MachineReport {
    /// Profiles of the devices.
    pub devices: Vec<DeviceProfile>,
    /// The host.
    pub host: DeviceProfile,
    /// The link between devices, except the pairs in `links`.
    pub link: Link,
    /// Links between pairs of devices.
    pub links: Vec<PairLink>,
    /// The link of the host to each device.
    pub host_link: Link,
    /// The positions of each machine's devices. The first machine has the host. `None` on one machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machines: Option<Vec<Vec<usize>>>,
    /// The network between machines; `None` on one machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkReport>,
    /// True if the user did not name the machine, so that profiles are defaults.
    pub assumed: bool,
}

/// The network between machines.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct NetworkReport {
    /// The name; `None` for other speeds.
    pub name: Option<&'static str>,
    /// The link of a machine to the network.
    pub link: Link,
}

/// True if profiles and links are defaults. Ignores servers, host memory and additional files.
fn is_assumed(topology: &Topology, processors: &[bool]) -> bool {
    let assumed = Topology::for_unnamed_machines(processors, &topology.machines);
    let alike = |a: &DeviceProfile, b: &DeviceProfile| {
        let bare = |p: &DeviceProfile| DeviceProfile {
            memory: None,
            beside: 0.0,
            ..p.clone()
        };
        bare(a) == bare(b)
    };
    let node = |d: &DeviceProfile| d.class == CardClass::NumaNode;
    if topology.devices.iter().all(node) {
        // Only the memory is known.
        return alike(&topology.host, &assumed.host);
    }
    let n = topology.devices.len().max(assumed.devices.len());
    let devices = (0..n).all(|d| {
        let (a, b) = (topology.device(d), assumed.device(d));
        a.memory == b.memory && alike(a, b)
    });
    let away = |l: &PairLink| topology.is_remote(l.a) || topology.is_remote(l.b);
    let links = topology.link == assumed.link || topology.link == Link::network();
    devices
        && links
        && topology.links.iter().all(away)
        && topology.host_link == assumed.host_link
        && alike(&topology.host, &assumed.host)
}

impl MachineReport {
    /// Reports the machine of a placement.
    pub fn new(placement: &Placement) -> MachineReport {
        let topology = &placement.topology;
        let n = placement.devices.len();
        let kinds = placement.devices.iter().map(|d| d.kind.is_processor());
        let processors: Vec<bool> = kinds.collect();
        let links = topology.links.iter().filter(|l| l.a < n && l.b < n);
        let all: Vec<usize> = (0..n).collect();
        let machines = placement
            .is_cluster()
            .then(|| topology.machines.group(&all));
        let link = topology.machines.network();
        MachineReport {
            devices: (0..n).map(|d| topology.device(d).clone()).collect(),
            host: topology.host.clone(),
            link: topology.link,
            links: links.copied().collect(),
            host_link: topology.host_link,
            network: machines.as_ref().map(|_| NetworkReport {
                name: Network::of_link(link).map(|n| n.name),
                link,
            }),
            machines,
            assumed: is_assumed(topology, &processors),
        }
    }

    /// True if all devices are the host's processor or its NUMA nodes.
    pub fn of_processors(&self) -> bool {
        let mut devices = self.devices.iter();
        devices.all(|d| d.class == CardClass::NumaNode || d.name == DeviceProfile::PROCESSOR)
    }

    /// Describes the devices: `2 × RTX 3090` or `RTX 4090 + RTX 3090`. Unnamed devices become `2 devices`. Several
    /// machines become `16 × RTX 3090 in 4 machines, joined by 10gbe`.
    pub fn devices_in_words(&self) -> String {
        let (devices, Some(machines)) = (self.all_in_words(), &self.machines) else {
            return self.all_in_words();
        };
        let network = match self.network.and_then(|n| n.name) {
            Some(name) => format!(", joined by {name}"),
            None => String::new(),
        };
        format!("{devices} in {} machines{network}", machines.len())
    }

    fn all_in_words(&self) -> String {
        if self.assumed && !self.of_processors() {
            return match self.devices.len() {
                1 => "1 device".to_owned(),
                n => format!("{n} devices"),
            };
        }
        let runs = self.devices.chunk_by(|a, b| a.name == b.name);
        let run = |run: &[DeviceProfile]| match run {
            [one] => one.name.clone(),
            all => format!("{} × {}", all.len(), all[0].name),
        };
        runs.map(run).collect::<Vec<_>>().join(" + ")
    }
}
