use ron::value::RawValue;
use serde::Deserialize;
use tpc_passes::machine::{Link, LinkKind, Network};

use super::device::MAX_ENTRIES;
use super::error::{Place, TopologyError, parse};
use super::value::{Raw, link, number, positive, words};
use crate::units::Unit;

/// The machines of a topology file.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct FileMachines {
    /// The machine of each device; empty if the file lists no machines.
    pub(super) of: Vec<usize>,
    /// Bytes of host memory of the first machine, if stated.
    pub(super) memory: Option<f64>,
    /// The network between machines, if stated.
    pub(super) network: Option<Link>,
}

/// One machine, or several equal machines.
#[derive(Deserialize)]
#[serde(rename = "Machine", deny_unknown_fields)]
struct MachineEntry<'a> {
    #[serde(borrow, default)]
    devices: Raw<'a>,
    #[serde(borrow, default)]
    count: Raw<'a>,
    #[serde(borrow, default)]
    memory: Raw<'a>,
}

impl FileMachines {
    /// Reads the list of machines, which divide the file's devices in order, and their network.
    pub(super) fn read(
        entries: &[&RawValue],
        network: Raw<'_>,
        devices: usize,
        place: Place<'_>,
    ) -> Result<FileMachines, TopologyError> {
        let mut out = FileMachines::default();
        let mut machines = 0;
        for raw in entries {
            let at = place.of(raw);
            let entry: MachineEntry<'_> = parse(at)?;
            let Some(own) = whole("devices", entry.devices, at)? else {
                return Err(at
                    .wrong("`devices` is missing")
                    .cure("add the number of devices in this machine: `(devices: 8)`"));
            };
            let count = whole("count", entry.count, at)?.unwrap_or(1);
            let memory = positive("memory", entry.memory, Unit::Bytes, at)?;
            if machines == 0 {
                out.memory = memory;
            }
            for _ in 0..count {
                out.of.extend(std::iter::repeat_n(machines, own));
                machines += 1;
            }
            // At most 64 entries of 64 machines with 64 devices each.
            if out.of.len() > devices {
                break;
            }
        }
        match entries.first() {
            Some(first) if out.of.len() != devices => {
                let counted = match out.of.len() > devices {
                    true => "more".to_owned(),
                    false => format!("only {}", out.of.len()),
                };
                let message =
                    format!("the file lists {devices} devices, but its machines have {counted}");
                let cure = "divide all devices in order: `machines: [(devices: 8, count: 2)]` for 16 devices";
                Err(place.of(first).wrong(message).cure(cure))
            }
            _ => out.joined(network, place),
        }
    }

    fn joined(self, network: Raw<'_>, place: Place<'_>) -> Result<FileMachines, TopologyError> {
        let Some(raw) = network else {
            return Ok(self);
        };
        if self.of.iter().all(|&m| m == 0) {
            let cure =
                "list the machines: `machines: [(devices: 8, count: 2)]`, or leave out the network";
            let message = "a network joins machines, but the file has one machine";
            return Err(place.of(raw).wrong(message).cure(cure));
        }
        Ok(FileMachines {
            network: self::network(raw, place)?,
            ..self
        })
    }
}

fn whole(field: &str, raw: Raw<'_>, at: Place<'_>) -> Result<Option<usize>, TopologyError> {
    match number(field, raw, at)? {
        None => Ok(None),
        Some(n) if n.fract() == 0.0 && (1.0..=MAX_ENTRIES as f64).contains(&n) => {
            Ok(Some(n as usize))
        }
        Some(n) => Err(at
            .of_field(raw)
            .wrong(format!("{field} cannot be {n}"))
            .cure(format!("write a whole number from 1 to {MAX_ENTRIES}"))),
    }
}

#[derive(Deserialize)]
#[serde(rename = "Network", deny_unknown_fields)]
struct NetworkEntry<'a> {
    #[serde(borrow, default)]
    bandwidth: Raw<'a>,
    #[serde(borrow, default)]
    latency_us: Raw<'a>,
}

/// Reads the network between machines: a name, or a bandwidth with a latency.
fn network(raw: &RawValue, within: Place<'_>) -> Result<Option<Link>, TopologyError> {
    let at = within.of(raw);
    if at.text().starts_with('(') || at.text().starts_with("Network") {
        let entry: NetworkEntry<'_> = parse(at)?;
        let rate = positive("bandwidth", entry.bandwidth, Unit::BytesPerSecond, at)?;
        let Some(rate) = rate else {
            let cure = "write a name such as \"ib-ndr\", or `(bandwidth: \"200 Gbit/s\", latency_us: 14.0)`";
            return Err(at.wrong("the network lacks a bandwidth").cure(cure));
        };
        let latency_us = number("latency_us", entry.latency_us, at)?;
        return Ok(Some(link(rate, latency_us, LinkKind::Network)));
    }
    let Some(name) = words("network", Some(raw), within)? else {
        return Ok(None);
    };
    match Network::named(&name) {
        Some(network) => Ok(Some(network.link)),
        None => Err(at
            .wrong(format!(
                "unknown network `{}`",
                tpc_diag::suggest::shorten(&name)
            ))
            .cure(format!(
                "write one of {}, or `(bandwidth: \"200 Gbit/s\", latency_us: 14.0)`",
                Network::names()
            ))),
    }
}
