use std::fmt;

use tpc_diag::Diagnostic;

use super::cluster::ClusterList;
use super::device_item::{DeviceItem, MAX_DEVICES, cure, wrong};
use crate::cards::{CardMatch, find, table};

/// The processor that runs a device's program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceKind {
    /// An unspecified device with the topology's profile.
    Generic,
    /// The CPU.
    Cpu,
    /// A CUDA device, by ordinal.
    Cuda(u32),
    /// The cores and memory of a NUMA node, by its number in the system.
    Numa(u32),
}

impl DeviceKind {
    /// True for the CPU and its NUMA nodes.
    pub const fn is_processor(self) -> bool {
        matches!(self, DeviceKind::Cpu | DeviceKind::Numa(_))
    }
}

/// One logical device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceSpec {
    /// The name in reports.
    pub name: String,
    /// The executor of its program.
    pub kind: DeviceKind,
    /// The card's name, if it is one.
    pub card: Option<String>,
    /// True if a topology file lists it.
    pub of_file: bool,
    /// The machine, if the device list states machines.
    pub machine: Option<usize>,
}

/// The value of `--devices`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum DeviceList {
    /// All devices of the topology file, or one device without a file.
    #[default]
    All,
    /// A number of devices.
    Count(usize),
    /// Devices by kind or name, in order.
    Named(Vec<DeviceItem>),
    /// Devices of several machines.
    Cluster(ClusterList),
}

impl DeviceList {
    /// True if the list names NUMA nodes, so that a plan needs the machine's [`NumaNode`](super::NumaNode)s.
    pub fn names_nodes(&self) -> bool {
        let is_node = |item: &DeviceItem| matches!(item, DeviceItem::Numa(_));
        matches!(self, DeviceList::Named(items) if items.iter().any(is_node))
    }

    /// Parses `2`, `2x3090`, `H100-SXM,A100`, `cpu,cpu`, `cuda:0,cuda1`, `numa`, `numa:0,numa:1` or
    /// `2*8xH100-SXM@ib-ndr`. Card and topology names are looked up later, by [`MachineRequest::machine`](super::MachineRequest::machine).
    ///
    /// # Errors
    /// Returns TPC0400 for an empty name, a CUDA device or NUMA node without a number, or a count of zero or above [`MAX_DEVICES`].
    pub fn parse(text: &str) -> Result<DeviceList, Diagnostic> {
        let trimmed = text.trim();
        if !trimmed.is_empty() && trimmed.bytes().all(|b| b.is_ascii_digit()) {
            let n: Option<usize> = trimmed.parse().ok();
            if n.is_some_and(|n| (1..=MAX_DEVICES).contains(&n)) {
                return Ok(DeviceList::Count(n.unwrap_or(1)));
            }
            // `3090` is a card, not a count.
            if matches!(find(trimmed, &[], table()), CardMatch::Unknown(_)) {
                return Err(wrong(format!("unsupported number of devices: {trimmed}")).help(cure()));
            }
        }
        if let Some(list) = ClusterList::parse(trimmed) {
            return list.map(DeviceList::Cluster);
        }
        let items = text.split(',').map(DeviceItem::parse);
        Ok(DeviceList::Named(items.collect::<Result<_, _>>()?))
    }
}

impl fmt::Display for DeviceList {
    /// Formats the list for `--devices`. All devices of a topology become `1`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let items = match self {
            DeviceList::All => return f.write_str("1"),
            DeviceList::Count(n) => return write!(f, "{n}"),
            DeviceList::Named(items) => items,
            DeviceList::Cluster(list) => return list.fmt(f),
        };
        for (i, item) in items.iter().enumerate() {
            f.write_str(if i > 0 { "," } else { "" })?;
            item.fmt(f)?;
        }
        Ok(())
    }
}

/// Formats devices for `--devices`: `2`, `2x3090,4090`, `cpu,cpu`, topology names, or `2*8xH100-SXM` without the network.
pub fn spell_devices(devices: &[DeviceSpec]) -> String {
    match devices.iter().any(|d| d.machine.is_some()) {
        true => spell_machines(devices),
        false => spell_one_machine(devices),
    }
}

/// Formats machines. The devices of a machine are alike.
fn spell_machines(devices: &[DeviceSpec]) -> String {
    let machines = devices.chunk_by(|a, b| a.machine == b.machine);
    let spelt = machines.map(|own| match own.first() {
        Some(d) if d.kind == DeviceKind::Generic && d.card.is_none() && !d.of_file => {
            own.len().to_string()
        }
        Some(d) => format!("{}x{}", own.len(), name_of(d)),
        None => String::new(),
    });
    let spelt: Vec<String> = spelt.collect();
    let runs = spelt.chunk_by(|a, b| a == b);
    let runs = runs.map(|run| format!("{}*{}", run.len(), run[0]));
    runs.collect::<Vec<_>>().join(",")
}

fn name_of(d: &DeviceSpec) -> String {
    match (&d.card, d.kind) {
        (_, DeviceKind::Cpu) => "cpu".to_owned(),
        (_, DeviceKind::Cuda(n)) => format!("cuda:{n}"),
        (_, DeviceKind::Numa(n)) => format!("numa:{n}"),
        (Some(card), DeviceKind::Generic) if !d.of_file => crate::cards::short_name(card),
        _ => d.name.clone(),
    }
}

fn spell_one_machine(devices: &[DeviceSpec]) -> String {
    let plain = |d: &DeviceSpec| d.kind == DeviceKind::Generic && d.card.is_none() && !d.of_file;
    if devices.iter().all(plain) {
        return devices.len().to_string();
    }
    let names: Vec<String> = devices.iter().map(name_of).collect();
    let several = |d: &DeviceSpec| d.card.is_some() && !d.of_file && d.kind == DeviceKind::Generic;
    let mut out: Vec<String> = Vec::new();
    let mut at = 0;
    while at < names.len() {
        let alike = names[at..].iter().take_while(|n| **n == names[at]).count();
        if several(&devices[at]) && alike > 1 {
            out.push(format!("{alike}x{}", names[at]));
            at += alike;
        } else {
            out.push(names[at].clone());
            at += 1;
        }
    }
    out.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::parse_devices;

    #[test]
    fn device_lists() {
        assert_eq!(parse_devices("3").map(|d| d.len()), Ok(3));
        for text in ["2x3090", "3090x2", "RTX 3090 x2", "rtx3090X2"] {
            let cards = parse_devices(text).map(|d| spell_devices(&d));
            assert_eq!(cards.as_deref(), Ok("2x3090"), "{text}");
        }
        for text in ["cuda:0,cuda:0", "cuda0,CUDA0", "cuda0, cuda:0"] {
            let found = parse_devices(text).expect(text);
            let kinds: Vec<DeviceKind> = found.iter().map(|d| d.kind).collect();
            assert_eq!(kinds, [DeviceKind::Cuda(0); 2], "{text}");
            assert_eq!(found[1].name, "cuda:0#1", "{text}");
        }
        for bad in [
            "0",
            "65",
            "",
            "gpu",
            "cuda:x",
            "cuda",
            "numa",
            "numa:",
            "numa:x",
            "numa:-1",
            "numa:0,cpu",
            "numa:0,3090",
            "numa:1,numa:1",
            "cpu,,cpu",
            "2,3090",
            "65x3090",
            "0x3090",
            "x3090",
            "2x",
            "2xx3090",
            "RTX 6000",
            "cpu,3090",
            "99999999999999999999",
        ] {
            let found = parse_devices(bad).expect_err(bad);
            assert_eq!(
                (found.code.id, found.help.is_some()),
                ("TPC0400", true),
                "{bad}"
            );
        }
    }

    #[test]
    fn cards_by_name_and_number() {
        let cards = |text: &str| {
            let found = parse_devices(text).unwrap_or_else(|e| panic!("{text}: {e:?}"));
            let cards: Vec<String> = found.into_iter().filter_map(|d| d.card).collect();
            cards.join(", ")
        };
        for (text, expected) in [
            ("2x3090", "RTX 3090, RTX 3090"),
            ("3090,4090", "RTX 3090, RTX 4090"),
            ("3090", "RTX 3090"),
            ("RTX 4090,RTX 3090", "RTX 4090, RTX 3090"),
            ("2x3090,1x4090", "RTX 3090, RTX 3090, RTX 4090"),
            ("2 x NVIDIA GeForce RTX 3090", "RTX 3090, RTX 3090"),
            ("2*3090", "RTX 3090, RTX 3090"),
            ("2X3090", "RTX 3090, RTX 3090"),
            ("2×3090", "RTX 3090, RTX 3090"),
            ("3090 x2", "RTX 3090, RTX 3090"),
            ("2 3090", "RTX 3090, RTX 3090"),
            ("3xH100-SXM", "H100 SXM, H100 SXM, H100 SXM"),
            ("2xH100 SXM", "H100 SXM, H100 SXM"),
            ("7900xtx", "RX 7900 XTX"),
            ("2x7900xtx", "RX 7900 XTX, RX 7900 XTX"),
            ("7900 XTX x2", "RX 7900 XTX, RX 7900 XTX"),
        ] {
            assert_eq!(cards(text), expected, "{text}");
        }
        assert!(parse_devices("2xMax Plus 396").is_err());
        let names: Vec<String> = parse_devices("2x3090,H100 SXM")
            .expect("cards")
            .into_iter()
            .map(|d| d.name)
            .collect();
        assert_eq!(names, ["3090#0", "3090#1", "H100-SXM#2"]);
    }

    #[test]
    fn devices_are_spelt_as_they_are_read() {
        for text in [
            "2",
            "2x3090,4090",
            "cpu,cpu",
            "cuda:0,cuda:0",
            "numa:0,numa:1",
            "H100-SXM",
            "3090,4090,3090",
        ] {
            let devices = parse_devices(text).expect(text);
            assert_eq!(spell_devices(&devices), text);
            assert_eq!(DeviceList::parse(text).expect(text).to_string(), text);
        }
    }
}
