use serde::Deserialize;
use tpc_passes::machine::{MemoryKind, Processor};

use super::{Card, Fabric, MemorySource, Pcie, Table, Vendor};

/// A link other than PCI Express, in GB/s of both directions of all links.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) enum FabricRow {
    Switch { gbs: f64, devices: usize },
    Mesh { gbs: f64, devices: usize },
    Bridge { gbs: f64, devices: usize },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(super) enum MemoryRow {
    Hbm,
    Gddr,
    Shared,
}

impl MemoryRow {
    const fn kind(self) -> MemoryKind {
        match self {
            MemoryRow::Hbm => MemoryKind::Hbm,
            MemoryRow::Gddr => MemoryKind::Gddr,
            MemoryRow::Shared => MemoryKind::Shared,
        }
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Row {
    pub(super) name: String,
    #[serde(default)]
    aliases: Vec<String>,
    vendor: Vendor,
    arch: String,
    #[serde(default)]
    capability: Option<String>,
    nominal_gib: f64,
    #[serde(default)]
    smi_mib: Option<u32>,
    #[serde(default)]
    pub(super) runtime_mib: Option<u32>,
    #[serde(default)]
    runtime_source: Option<String>,
    pub(super) memory: MemoryRow,
    bandwidth_gbs: f64,
    #[serde(default)]
    fp16_tflops: Option<f64>,
    #[serde(default)]
    fp16_acc32_tflops: Option<f64>,
    #[serde(default)]
    fp32_tflops: Option<f64>,
    #[serde(default)]
    int8_tops: Option<f64>,
    units: u32,
    boost_mhz: u32,
    pcie: Pcie,
    peer: bool,
    #[serde(default)]
    fabric: Option<FabricRow>,
    #[serde(default)]
    host_gbs: Option<f64>,
    #[serde(default)]
    network_gbits: Option<f64>,
    #[serde(default = "specification")]
    source: String,
    #[serde(default)]
    note: Option<String>,
}

fn specification() -> String {
    "the vendor's specification, from memory".to_owned()
}

#[derive(Deserialize)]
#[serde(rename = "Table", deny_unknown_fields)]
struct File {
    cards: Vec<Row>,
    meant: Vec<(String, String)>,
    several: Vec<String>,
}

fn file(text: &str) -> Result<File, ron::error::SpannedError> {
    ron::Options::default()
        .with_default_extension(ron::extensions::Extensions::IMPLICIT_SOME)
        .from_str(text)
}

#[cfg(test)]
pub(super) fn rows(text: &str) -> Result<Vec<Row>, ron::error::SpannedError> {
    Ok(file(text)?.cards)
}

pub(super) fn read(text: &str) -> Result<Table, ron::error::SpannedError> {
    let file = file(text)?;
    Ok(Table {
        cards: file.cards.into_iter().map(Card::from).collect(),
        meant: file.meant,
        several: file.several,
    })
}

/// Fraction of shared memory for programs, graphics and processor together. Firmware and system use the rest.
pub(super) const SHARED_SHARE: f64 = 0.93;

/// MiB of nvidia-smi's figure that programs do not get.
const DRIVER_MIB: f64 = 450.0;

impl Row {
    /// Computes the bytes that the driver gives to a program: the reported size, or else nvidia-smi's figure less 450
    /// MiB. Otherwise the nominal size less 450 MiB (NVIDIA), 144 MiB (AMD), 5 % (Intel), or 7 % for memory shared with
    /// the host. macOS gives programs three quarters.
    pub(super) fn memory_bytes(&self) -> f64 {
        let nominal = self.nominal_gib * 1024.0;
        let mib = match (self.runtime_mib, self.smi_mib, self.vendor) {
            (Some(mib), _, _) => f64::from(mib),
            (None, Some(mib), _) => f64::from(mib) - DRIVER_MIB,
            (None, None, Vendor::Apple) => 0.75 * nominal,
            (None, None, _) if self.memory == MemoryRow::Shared => SHARED_SHARE * nominal,
            (None, None, Vendor::Nvidia) => nominal - DRIVER_MIB,
            (None, None, Vendor::Amd) => nominal - 144.0,
            (None, None, Vendor::Intel) => 0.95 * nominal,
        };
        mib * 1048576.0
    }

    fn memory_source(&self) -> MemorySource {
        match (&self.runtime_source, self.smi_mib) {
            (Some(source), _) => MemorySource::Driver(source.clone()),
            (None, Some(_)) => MemorySource::Tool,
            (None, None) => MemorySource::Nominal,
        }
    }
}

impl From<Row> for Card {
    fn from(r: Row) -> Card {
        let tera = |x: f64| x * 1e12;
        let flops = r.fp16_acc32_tflops.or(r.fp16_tflops).or(r.fp32_tflops);
        let fabric = r.fabric.map(|f| match f {
            FabricRow::Switch { gbs, devices } => Fabric::Switch {
                bandwidth: gbs * 1e9,
                devices,
            },
            FabricRow::Mesh { gbs, devices } => Fabric::Mesh {
                bandwidth: gbs * 1e9,
                devices,
            },
            FabricRow::Bridge { gbs, devices } => Fabric::Bridge {
                bandwidth: gbs * 1e9,
                devices,
            },
        });
        Card {
            memory: r.memory_bytes(),
            memory_source: r.memory_source(),
            name: r.name,
            aliases: r.aliases,
            vendor: Some(r.vendor),
            arch: Some(r.arch),
            capability: r.capability,
            nominal_gib: Some(r.nominal_gib),
            bandwidth: r.bandwidth_gbs * 1e9,
            flops: tera(flops.unwrap_or(0.0)),
            fp16: r.fp16_tflops.map(tera),
            processor: Some(Processor {
                units: r.units,
                clock: f64::from(r.boost_mhz) * 1e6,
                memory: r.memory.kind(),
                int8: r.int8_tops.map(tera),
                ported: Some(r.vendor != Vendor::Nvidia),
            }),
            pcie: r.pcie,
            peer: r.peer,
            fabric,
            host_bandwidth: r.host_gbs.map(|x| x / 2.0 * 1e9),
            network: r.network_gbits.map(|x| x / 8.0 * 1e9),
            source: r.source,
            note: r.note,
        }
    }
}
