use schemars::JsonSchema;
use serde::Serialize;

use super::{Calibration, CardClass, Engine, Link, Machines, PairLink};

/// The kind of a device's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub enum MemoryKind {
    /// HBM2 or newer, on the processor's package.
    Hbm,
    /// GDDR5X or newer.
    Gddr,
    /// Memory shared with the host.
    Shared,
}

/// Processor properties that limit speed besides memory bandwidth and arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Processor {
    /// Streaming multiprocessors, or compute units.
    pub units: u32,
    /// Boost clock in hertz.
    pub clock: f64,
    /// Kind of memory.
    pub memory: MemoryKind,
    /// 8-bit integer throughput in operations per second (two per multiply-add), if known.
    pub int8: Option<f64>,
    /// True if engines run kernels ported from another vendor's hardware; `None` if unknown.
    #[serde(default)]
    pub ported: Option<bool>,
}

/// The memory and speed of a device.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct DeviceProfile {
    /// Name in reports.
    pub name: String,
    /// Bytes of memory. If `None`, plans are not checked against the memory.
    pub memory: Option<f64>,
    /// Bytes reserved for the driver's context and the engine's own buffers.
    pub reserve: f64,
    /// Bytes of the command's other models and adapters: drafts, image encoders, LoRA adapters.
    #[serde(skip_serializing_if = "is_zero")]
    pub beside: f64,
    /// Bytes of memory shared by device and host; `None` for a device with its own memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool: Option<f64>,
    /// Memory bandwidth in bytes per second.
    pub bandwidth: f64,
    /// Arithmetic throughput in operations per second (two per multiply-add).
    pub flops: f64,
    /// Processor properties, if known.
    pub processor: Option<Processor>,
    /// Device generation.
    #[serde(skip)]
    pub class: CardClass,
}

impl DeviceProfile {
    /// Returns the bytes available to the model; `None` if unknown.
    pub fn usable_memory(&self) -> Option<f64> {
        self.memory
            .map(|m| (m - self.reserve - self.beside).max(0.0))
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(bytes: &f64) -> bool {
    *bytes == 0.0
}

/// The machine that a plan is for.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Topology {
    /// The devices. A plan for `N` devices uses the first `N`; if there are fewer, the last profile repeats.
    pub devices: Vec<DeviceProfile>,
    /// The link between devices not in [`Self::links`].
    pub link: Link,
    /// Links of single pairs of devices.
    pub links: Vec<PairLink>,
    /// The host.
    pub host: DeviceProfile,
    /// The link between the host and each device.
    pub host_link: Link,
    /// The machine of each device, and the network between machines.
    #[serde(skip_serializing_if = "Machines::is_one")]
    pub machines: Machines,
    /// The machine's calibration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calibration: Option<Calibration>,
}

const fn default_link() -> Link {
    Link::new(50e9, 10.0)
}

const fn default_host_link() -> Link {
    Link::new(25e9, 10.0)
}

/// The default host's bytes/s and operations/s: two channels of DDR5 and a matching CPU.
const USUAL_HOST: (f64, f64) = (60e9, 1e12);

impl DeviceProfile {
    /// The name of the host's CPU used as a device.
    pub const PROCESSOR: &str = "cpu";
    /// The name of a NUMA node of the host used as a device.
    pub const NUMA_NODE: &str = "NUMA node";

    /// Returns a host with this memory bandwidth in bytes per second. Arithmetic throughput is in proportion, because
    /// CPUs with more channels have more cores.
    pub fn host(bandwidth: f64) -> DeviceProfile {
        let (usual, flops) = USUAL_HOST;
        DeviceProfile {
            name: "host".into(),
            memory: None,
            reserve: 0.0,
            beside: 0.0,
            pool: None,
            bandwidth,
            flops: flops * bandwidth / usual,
            processor: None,
            class: CardClass::Processor,
        }
    }
}

/// Returns the link between places in one memory. A copy reads and writes the memory, and threads synchronise.
const fn within(bandwidth: f64) -> Link {
    Link::new(bandwidth / 2.0, 2.0)
}

impl Topology {
    /// Returns the default topology of unspecified machines, with a CPU for each `true`. The CPUs of a machine share its
    /// host's memory and cores evenly.
    pub fn for_unnamed_machines(processors: &[bool], machines: &Machines) -> Topology {
        let mut out = Topology::default();
        let all: Vec<usize> = (0..processors.len()).filter(|&d| processors[d]).collect();
        let count = machines.group(&all).iter().map(Vec::len).max().unwrap_or(0);
        if count == 0 {
            return out;
        }
        let processor = DeviceProfile {
            name: DeviceProfile::PROCESSOR.into(),
            ..DeviceProfile::host(out.host.bandwidth / count as f64)
        };
        let other = out.devices[0].clone();
        let profile = |is_processor: &bool| match is_processor {
            true => processor.clone(),
            false => other.clone(),
        };
        out.devices = processors.iter().map(profile).collect();
        if all.len() == processors.len() {
            out.link = within(out.host.bandwidth);
            out.host_link = out.link;
        }
        out
    }
}

impl Topology {
    /// Gives a CPU all cores and the whole bandwidth of the host, if several CPUs share the host and only this one works.
    /// A NUMA node keeps its own cores and memory.
    pub fn give_processor_to(&mut self, device: Option<usize>) {
        let host = (self.host.bandwidth, self.host.flops);
        let is_part = |d: &DeviceProfile| d.class == CardClass::Processor && d.bandwidth < host.0;
        if let Some(d) = device
            .and_then(|d| self.devices.get_mut(d))
            .filter(|d| is_part(d))
        {
            (d.bandwidth, d.flops) = host;
        }
    }
}

impl Default for Topology {
    /// Returns the documented default. Devices: 1 TB/s, 200 TFLOP/s, unknown memory, links of 50 GB/s and 10 µs. Host:
    /// 60 GB/s, links of 25 GB/s and 10 µs.
    fn default() -> Topology {
        let device = DeviceProfile {
            name: "device".into(),
            memory: None,
            reserve: 0.0,
            beside: 0.0,
            pool: None,
            bandwidth: 1e12,
            flops: 2e14,
            processor: None,
            class: CardClass::Unknown,
        };
        Topology {
            devices: vec![device],
            link: default_link(),
            links: Vec::new(),
            host: DeviceProfile::host(USUAL_HOST.0),
            host_link: default_host_link(),
            machines: Machines::default(),
            calibration: None,
        }
    }
}

impl Topology {
    /// Returns the calibration of an engine, if measured.
    pub fn calibration_for(&self, engine: Engine) -> Option<&Calibration> {
        self.calibration.as_ref().filter(|c| c.engine == engine)
    }

    /// Returns the profile of the device at position `rank`.
    pub fn device(&self, rank: usize) -> &DeviceProfile {
        &self.devices[rank.min(self.devices.len() - 1)]
    }

    /// Returns the link between two devices: the stated link of the pair, else the network between their machines, else
    /// the link within a machine.
    pub fn link_between(&self, a: usize, b: usize) -> Link {
        let stated = self
            .links
            .iter()
            .find(|p| (p.a, p.b) == (a, b) || (p.a, p.b) == (b, a));
        let machine = |d| self.machines.of_device(d);
        match stated {
            Some(pair) => pair.link,
            None if machine(a) != machine(b) => self.machines.network(),
            None => self.link,
        }
    }

    /// Returns the same machines with another network in place of the present one.
    #[must_use]
    pub fn with_network(&self, network: Link) -> Topology {
        let before = self.machines.network();
        let renew = |link: &mut Link| {
            if *link == before {
                *link = network;
            }
        };
        let mut out = self.clone();
        renew(&mut out.link);
        out.links.iter_mut().for_each(|p| renew(&mut p.link));
        out.machines = self.machines.with_network(network);
        out
    }

    /// Returns the slowest link between neighbours in a ring of these devices.
    pub fn slowest_ring_link(&self, devices: &[usize]) -> Link {
        let neighbours = devices.iter().zip(devices.iter().cycle().skip(1));
        neighbours
            .map(|(&a, &b)| self.link_between(a, b))
            .reduce(Link::bottleneck)
            .unwrap_or(self.link)
    }
}
