//! Several machines in `--devices`: `2*8xH100-SXM@ib-ndr` is two machines with eight cards each, and their network.

use std::fmt;

use tpc_diag::Diagnostic;
use tpc_passes::machine::Network;

use super::device_item::{DeviceItem, MAX_DEVICES, cure, split_count, wrong};
use crate::cards::{CardMatch, find, table};

/// Equal machines of a device list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineGroup {
    /// The number of machines.
    pub machines: usize,
    /// The number of devices in each machine.
    pub devices: usize,
    /// The device; `None` for unspecified devices.
    pub item: Option<DeviceItem>,
}

/// A list of machines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterList {
    /// The machines, in order.
    pub groups: Vec<MachineGroup>,
    /// The name of the network; `None` for the default.
    pub network: Option<&'static str>,
}

impl ClusterList {
    /// Parses `2*8xH100-SXM@ib-ndr`, `4*1xcpu`, `2*4` or `2*8xH100,4xA100@25gbe`. Returns `None` for a list of one
    /// machine without a network.
    ///
    /// # Errors
    /// Returns TPC0400 for an unknown network, a network of one machine, and counts of zero or above [`MAX_DEVICES`].
    pub(super) fn parse(text: &str) -> Option<Result<ClusterList, Diagnostic>> {
        let (list, network) = match text.rsplit_once('@') {
            Some((list, network)) => (list, Some(network.trim())),
            None => (text, None),
        };
        let terms: Vec<&str> = list.split(',').collect();
        let is_cluster = terms.iter().any(|t| machines_of(t).is_some());
        match (is_cluster, network) {
            // Names of a topology file may contain `@`.
            (false, Some(name)) if Network::named(name).is_some() => Some(Err(one_machine(list))),
            (false, _) => None,
            (true, network) => Some(ClusterList::of(&terms, network)),
        }
    }

    fn of(terms: &[&str], network: Option<&str>) -> Result<ClusterList, Diagnostic> {
        let network = network.map(|name| {
            Network::named(name).ok_or_else(|| {
                let shown = tpc_diag::suggest::shorten(name);
                wrong(format!("unknown network `{shown}`")).help(format!(
                    "write one of {} after all devices, or state the network in a topology file (--topology)",
                    Network::names()
                ))
            })
        });
        let network = network.transpose()?.map(|n| n.name);
        let mut groups = Vec::new();
        for term in terms {
            let (machines, rest) = machines_of(term).unwrap_or((1, term.trim()));
            let (devices, item) = devices_of(rest)?;
            groups.push(MachineGroup {
                machines,
                devices,
                item,
            });
        }
        let out = ClusterList { groups, network };
        let total = out
            .groups
            .iter()
            .map(|g| g.machines.saturating_mul(g.devices));
        let total = total.fold(0, usize::saturating_add);
        if total > MAX_DEVICES || out.groups.iter().any(|g| g.machines * g.devices == 0) {
            return Err(wrong(format!("unsupported number of devices: {total}")).help(cure()));
        }
        match (out.machines(), network) {
            (1, Some(_)) => Err(one_machine(&terms.join(","))),
            _ => Ok(out),
        }
    }

    /// Returns the number of machines.
    pub fn machines(&self) -> usize {
        self.groups.iter().map(|g| g.machines).sum()
    }
}

/// Splits `2*8xH100` into the number of machines and the devices of each machine. `None` for `2*H100`, which is two
/// cards in one machine.
fn machines_of(term: &str) -> Option<(usize, &str)> {
    let (machines, rest) = term.split_once('*')?;
    let machines = machines.trim().parse().ok()?;
    let rest = rest.trim();
    let counted = count_of(rest).is_some()
        || split_count(rest).is_some_and(|(n, _)| n <= MAX_DEVICES) && !is_card(rest);
    counted.then_some((machines, rest))
}

fn count_of(text: &str) -> Option<usize> {
    text.parse().ok().filter(|n| *n <= MAX_DEVICES)
}

fn is_card(text: &str) -> bool {
    !matches!(find(text, &[], table()), CardMatch::Unknown(_))
}

fn devices_of(text: &str) -> Result<(usize, Option<DeviceItem>), Diagnostic> {
    if let Some(n) = count_of(text) {
        return Ok((n, None));
    }
    match split_count(text) {
        Some((n, name)) if n <= MAX_DEVICES && !is_card(text) => {
            Ok((n, Some(DeviceItem::parse(name)?)))
        }
        _ => Ok((1, Some(DeviceItem::parse(text)?))),
    }
}

fn one_machine(list: &str) -> Diagnostic {
    let shown = tpc_diag::suggest::shorten(list);
    wrong(format!(
        "`{shown}` is one machine, but a network joins several"
    ))
    .help("write MACHINES*DEVICES@NETWORK, such as `2*8xH100-SXM@ib-ndr`, or leave out the network")
}

impl fmt::Display for ClusterList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, group) in self.groups.iter().enumerate() {
            f.write_str(if i > 0 { "," } else { "" })?;
            write!(f, "{}*{}", group.machines, group.devices)?;
            if let Some(item) = &group.item {
                write!(f, "x{item}")?;
            }
        }
        match self.network {
            Some(name) => write!(f, "@{name}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{DeviceList, parse_devices, spell_devices};
    use super::*;

    fn cluster(text: &str) -> ClusterList {
        match DeviceList::parse(text) {
            Ok(DeviceList::Cluster(list)) => list,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn machines_are_read_as_they_are_written() {
        for (text, machines, devices) in [
            ("2*8xH100-SXM@ib-ndr", 2, 16),
            ("2*8xH100-SXM@25gbe", 2, 16),
            ("4*4x3090@10gbe", 4, 16),
            ("8*8xH100-SXM@ib-xdr", 8, 64),
            ("2*2xcpu@10gbe", 2, 4),
            ("2*1xcuda:0@10gbe", 2, 2),
            ("2*4@ib-hdr", 2, 8),
            ("2*1x7900-XTX@10gbe", 2, 2),
            ("2*8xH100-SXM,1*4xA100-SXM-80GB@100gbe", 3, 20),
        ] {
            let list = cluster(text);
            assert_eq!(list.machines(), machines, "{text}");
            assert_eq!(list.to_string(), text);
            let found = parse_devices(text).expect(text);
            assert_eq!(found.len(), devices, "{text}");
            let last = found.last().and_then(|d| d.machine);
            assert_eq!(last, Some(machines - 1), "{text}");
            let spelt = format!("{}@{}", spell_devices(&found), list.network.unwrap_or(""));
            assert_eq!(spelt, text);
        }
        assert_eq!(
            cluster("2 * 8 x H100 @ IB NDR").to_string(),
            "2*8xH100@ib-ndr"
        );
        assert_eq!(cluster("2*8xH100,4xA100").machines(), 3);
        for one in ["2*3090", "2*7900xtx", "8xH100", "2x3090,1x4090"] {
            let list = DeviceList::parse(one).expect(one);
            assert!(matches!(list, DeviceList::Named(_)), "{one}");
        }
    }

    #[test]
    fn wrong_machines_are_cured() {
        for (bad, said) in [
            ("2*8xH100@tokenring", "unknown network `tokenring`"),
            ("2*8xH100@ib-ndr,4xA100", "unknown network `ib-ndr,4xA100`"),
            (
                "8xH100@ib-ndr",
                "`8xH100` is one machine, but a network joins several",
            ),
            (
                "1*8xH100@ib-ndr",
                "`1*8xH100` is one machine, but a network joins several",
            ),
            ("9*8xH100@ib-ndr", "unsupported number of devices: 72"),
            ("0*8xH100@ib-ndr", "unsupported number of devices: 0"),
            ("2*0xH100@ib-ndr", "unsupported number of devices: 0"),
        ] {
            let d = DeviceList::parse(bad).expect_err(bad);
            assert_eq!(
                (d.code.id, d.message.to_string().as_str()),
                ("TPC0400", said),
                "{bad}"
            );
            assert!(d.help.is_some(), "{bad}");
        }
    }
}
