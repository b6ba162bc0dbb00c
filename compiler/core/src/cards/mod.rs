//! A table of graphics cards and accelerators, and the links between them.

mod class;
mod links;
mod names;
mod row;

use std::sync::LazyLock;

use tpc_passes::machine::{DeviceProfile, MemoryKind, Processor};

pub use class::class_of_name;
pub use links::{apart_from, between_cards, host_link, most_common};
pub use names::{CardMatch, find, short_name};

/// Default reserve of a card for the driver's context and the engine's buffers: 1 GiB, as llama.cpp's `--fit-target`.
pub const RESERVE: f64 = 1_073_741_824.0;

/// The vendor of a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Deserialize)]
pub enum Vendor {
    /// NVIDIA.
    Nvidia,
    /// AMD.
    Amd,
    /// Intel.
    Intel,
    /// Apple.
    Apple,
}

impl Vendor {
    /// Returns the name.
    pub const fn name(self) -> &'static str {
        match self {
            Vendor::Nvidia => "NVIDIA",
            Vendor::Amd => "AMD",
            Vendor::Intel => "Intel",
            Vendor::Apple => "Apple",
        }
    }
}

/// A card's PCI Express interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pcie {
    /// The generation.
    pub r#gen: u32,
    /// Number of lanes.
    pub lanes: u32,
}

impl Pcie {
    /// Computes the bytes per second of copies in each direction: 0.8 of the lanes' rate. A lane has 0.985 GB/s in
    /// generation 3, and twice the rate of the generation before in later ones.
    pub fn bandwidth(self) -> f64 {
        let lane = 0.985e9 * 2.0_f64.powi(self.r#gen as i32 - 3);
        0.8 * lane * f64::from(self.lanes)
    }
}

/// Links other than PCI Express. Bandwidths count both directions of all links together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fabric {
    /// A switch, or direct links between all devices of a board.
    Switch {
        /// Bytes per second.
        bandwidth: f64,
        /// Number of devices on a board.
        devices: usize,
    },
    /// Direct links between some devices of a board; rings use all links.
    Mesh {
        /// Bytes per second.
        bandwidth: f64,
        /// Number of devices on a board.
        devices: usize,
    },
    /// A bridge that is sold separately.
    Bridge {
        /// Bytes per second.
        bandwidth: f64,
        /// Number of devices that a bridge joins.
        devices: usize,
    },
}

impl Fabric {
    /// Returns the bytes per second in both directions together.
    pub const fn bandwidth(self) -> f64 {
        match self {
            Fabric::Switch { bandwidth, .. }
            | Fabric::Mesh { bandwidth, .. }
            | Fabric::Bridge { bandwidth, .. } => bandwidth,
        }
    }

    /// Returns the number of joined devices.
    pub const fn devices(self) -> usize {
        match self {
            Fabric::Switch { devices, .. }
            | Fabric::Mesh { devices, .. }
            | Fabric::Bridge { devices, .. } => devices,
        }
    }
}

/// The source of a card's memory size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemorySource {
    /// Reported by the driver. The text is the source of the report.
    Driver(String),
    /// nvidia-smi's figure less the driver's memory.
    Tool,
    /// Computed from the nominal size.
    Nominal,
    /// Stated in a topology file.
    Stated,
}

/// The figures of a card.
#[derive(Clone, Debug, PartialEq)]
pub struct Card {
    /// The name.
    pub name: String,
    /// Alternative names.
    pub aliases: Vec<String>,
    /// The vendor, if known.
    pub vendor: Option<Vendor>,
    /// The architecture, if known.
    pub arch: Option<String>,
    /// The CUDA compute capability.
    pub capability: Option<String>,
    /// Bytes of memory that the driver gives to a program.
    pub memory: f64,
    /// The source of the memory size.
    pub memory_source: MemorySource,
    /// Nominal memory in GiB.
    pub nominal_gib: Option<f64>,
    /// Memory bandwidth in bytes per second.
    pub bandwidth: f64,
    /// Operations per second that plans assume: fp16 with fp32 sums, if known.
    pub flops: f64,
    /// Operations per second of dense fp16 matrix products, with any type of sum.
    pub fp16: Option<f64>,
    /// The processor, if known.
    pub processor: Option<Processor>,
    /// The PCI Express interface.
    pub pcie: Pcie,
    /// True if the driver copies directly between two cards of this kind over PCI Express.
    pub peer: bool,
    /// Links other than PCI Express.
    pub fabric: Option<Fabric>,
    /// Bytes per second in each direction to the host, if the host link is not PCI Express.
    pub host_bandwidth: Option<f64>,
    /// Bytes per second in each direction of the network between machines, if they are sold with one.
    pub network: Option<f64>,
    /// The source of the figures.
    pub source: String,
    /// Further remarks.
    pub note: Option<String>,
}

impl Card {
    /// Returns the device profile, called `name` in reports.
    pub fn profile(&self, name: impl Into<String>) -> DeviceProfile {
        DeviceProfile {
            name: name.into(),
            memory: Some(self.memory),
            reserve: RESERVE,
            beside: 0.0,
            pool: self.pool(),
            bandwidth: self.bandwidth,
            flops: self.flops,
            processor: self.processor,
            class: self.class(),
        }
    }

    /// Returns the bytes of memory that the card shares with the host; `None` if the card has its own memory. This is
    /// 93 % of the machine's memory, because firmware and system take 7 %, but at least the driver's figure.
    pub fn pool(&self) -> Option<f64> {
        self.processor.filter(|p| p.memory == MemoryKind::Shared)?;
        let sold = self.nominal_gib.unwrap_or(0.0) * 1_073_741_824.0;
        Some((row::SHARED_SHARE * sold).max(self.memory))
    }

    /// Returns the 8-bit operations per second, if known.
    pub fn int8(&self) -> Option<f64> {
        self.processor?.int8
    }
}

/// The known cards.
#[derive(Debug)]
pub struct Table {
    /// The cards.
    pub cards: Vec<Card>,
    /// Names that several cards share, each with the most common card.
    pub meant: Vec<(String, String)>,
    /// Names that several equally common cards share.
    pub several: Vec<String>,
}

/// Returns the table of this repository.
pub fn table() -> &'static Table {
    static TABLE: LazyLock<Table> =
        LazyLock::new(|| row::read(include_str!("cards.ron")).expect("invariant: a test reads it"));
    &TABLE
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use tpc_passes::machine::MemoryKind;

    use super::*;

    #[test]
    fn the_table_is_sane() {
        row::read(include_str!("cards.ron")).expect("the table is RON");
        assert!(table().cards.len() >= 55);
        let mut names = BTreeSet::new();
        for c in &table().cards {
            let name = &c.name;
            assert!(names.insert(name.as_str()), "{name} is there twice");
            let within = |what: &str, low: f64, x: f64, high: f64| {
                assert!((low..=high).contains(&x), "{name}: {what} is {x}");
            };
            let nominal = c.nominal_gib.expect("a nominal size") * RESERVE;
            within("memory of nominal", 0.74, c.memory / nominal, 1.0001);
            within("bandwidth", 1e11, c.bandwidth, 1e13);
            within("flops", 4e12, c.flops, 3e15);
            assert!(
                c.fp16.is_none_or(|x| x >= c.flops),
                "{name}: fp16 below what plans count with"
            );
            let p = c.processor.expect("a processor");
            within("units", 10.0, f64::from(p.units), 400.0);
            within("clock", 1e9, p.clock, 3.2e9);
            // Products in int8 are at most four times as fast as in fp16 with fp32 sums. dp4a has the same ratio to
            // plain fp32.
            assert!(
                p.int8.is_none_or(|x| (0.9..=4.2).contains(&(x / c.flops))),
                "{name}: int8"
            );
            within("generation", 1.0, f64::from(c.pcie.r#gen), 6.0);
            assert!([4, 8, 16].contains(&c.pcie.lanes), "{name}: lanes");
            // HBM has more than 400 GB/s, GDDR less than 2 TB/s.
            match p.memory {
                MemoryKind::Hbm => within("bandwidth", 4e11, c.bandwidth, 1e13),
                MemoryKind::Gddr => within("bandwidth", 1.9e11, c.bandwidth, 2e12),
                MemoryKind::Shared => within("bandwidth", 1e11, c.bandwidth, 1e12),
            }
            if let Some(f) = c.fabric {
                within("fabric", 4e10, f.bandwidth(), 2e12);
                assert!([2, 4, 8].contains(&f.devices()), "{name}: fabric");
            }
            assert_eq!(
                c.vendor == Some(Vendor::Nvidia),
                c.capability.is_some(),
                "{name}"
            );
            assert!(!c.source.is_empty());
        }
    }

    #[test]
    fn estimates_of_memory_are_near_what_drivers_report() {
        let rows = row::rows(include_str!("cards.ron")).expect("the table is RON");
        let mut known = 0;
        for r in rows {
            let Some(mib) = r.runtime_mib.filter(|_| r.memory != row::MemoryRow::Shared) else {
                continue;
            };
            known += 1;
            let mut unknown = r.clone();
            unknown.runtime_mib = None;
            let estimated = unknown.memory_bytes() / 1048576.0;
            let error = estimated / f64::from(mib) - 1.0;
            assert!(
                (-0.035..=0.03).contains(&error),
                "{}: {estimated} for {mib}",
                r.name
            );
        }
        assert!(known >= 10);
    }
}
