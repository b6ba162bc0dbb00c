//! Links between places: kinds, speeds, and links of single pairs of devices.

use schemars::JsonSchema;
use serde::Serialize;

/// The kind of link between two places, fastest first.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema,
)]
pub enum LinkKind {
    /// A switch between all devices: NVSwitch, or an MI300X board's fabric.
    #[serde(rename = "nvswitch")]
    NvSwitch,
    /// Direct links between devices: NVLink, Infinity Fabric.
    #[serde(rename = "nvlink")]
    NvLink,
    /// PCI Express between devices.
    #[serde(rename = "pcie-p2p")]
    PciePeer,
    /// PCI Express through host memory, for devices without peer copies.
    #[serde(rename = "pcie")]
    PcieHost,
    /// A network between machines.
    #[serde(rename = "network")]
    Network,
    /// Unknown: only bandwidth and latency are given.
    #[default]
    #[serde(rename = "unstated")]
    Unstated,
}

impl LinkKind {
    /// The kinds that users can state.
    pub const STATED: [LinkKind; 5] = [
        LinkKind::NvSwitch,
        LinkKind::NvLink,
        LinkKind::PciePeer,
        LinkKind::PcieHost,
        LinkKind::Network,
    ];

    /// Returns the name in options, files and reports.
    pub const fn name(self) -> &'static str {
        match self {
            LinkKind::NvSwitch => "nvswitch",
            LinkKind::NvLink => "nvlink",
            LinkKind::PciePeer => "pcie-p2p",
            LinkKind::PcieHost => "pcie",
            LinkKind::Network => "network",
            LinkKind::Unstated => "unstated",
        }
    }

    /// True if the link is separate from PCI Express.
    pub const fn is_fabric(self) -> bool {
        matches!(self, LinkKind::NvSwitch | LinkKind::NvLink)
    }

    /// Returns the default latency in microseconds.
    pub const fn latency_us(self) -> f64 {
        match self {
            LinkKind::NvSwitch | LinkKind::NvLink => 8.0,
            LinkKind::PciePeer => 12.0,
            LinkKind::PcieHost => 25.0,
            LinkKind::Network => 50.0,
            LinkKind::Unstated => 10.0,
        }
    }
}

/// The speed of a link between two places.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Link {
    /// Bytes per second in each direction.
    pub bandwidth: f64,
    /// Microseconds before the first byte arrives.
    pub latency_us: f64,
    /// The kind.
    pub kind: LinkKind,
}

impl Link {
    /// Returns a link of unstated kind, with bytes per second and microseconds of latency.
    pub const fn new(bandwidth: f64, latency_us: f64) -> Link {
        Link {
            bandwidth,
            latency_us,
            kind: LinkKind::Unstated,
        }
    }

    /// Returns a link with its kind's default latency.
    pub const fn of(kind: LinkKind, bandwidth: f64) -> Link {
        Link {
            bandwidth,
            latency_us: kind.latency_us(),
            kind,
        }
    }

    /// Returns the default network: 10 Gbit/s Ethernet.
    pub const fn network() -> Link {
        Link::of(LinkKind::Network, 10e9 / 8.0)
    }

    /// Returns the link equivalent to two links in series: the smaller bandwidth, the longer latency, the slower kind.
    pub fn bottleneck(self, other: Link) -> Link {
        Link {
            bandwidth: self.bandwidth.min(other.bandwidth),
            latency_us: self.latency_us.max(other.latency_us),
            kind: self.kind.max(other.kind),
        }
    }
}

/// A link between two given devices.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PairLink {
    /// One device's position.
    pub a: usize,
    /// The other device's position.
    pub b: usize,
    /// The link.
    pub link: Link,
}
