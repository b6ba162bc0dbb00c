//! Topology files: the devices of a machine and their links, in RON.
//!
//! A device is a card by name, with optional other figures, or has its own figures. Numbers are parsed from text
//! (`value`), so that errors have the line and column of the value.

mod calibration;
mod card;
mod device;
mod entries;
mod error;
mod machines;
mod value;

use tpc_passes::machine::{Calibration, DeviceProfile, Link, LinkKind, PairLink, Topology};

use crate::cards::Card;
pub use device::{FileDevice, MAX_ENTRIES};
use entries::{CardEntry, DeviceEntry, FileEntry, HostEntry, LinkEntry, PairEntry};
pub use error::TopologyError;
use error::{Place, parse};
use machines::FileMachines;

/// A valid topology file.
#[derive(Clone, Debug, PartialEq)]
pub struct TopologyFile {
    /// Cards that the file defines. They override the card table.
    pub cards: Vec<Card>,
    /// Devices with unique names.
    pub devices: Vec<FileDevice>,
    /// The default link between devices, if the file has figures for it.
    pub link: Option<Link>,
    /// The kind of link between cards, if the file has only the kind.
    pub way: Option<LinkKind>,
    /// Links between two devices by position.
    pub links: Vec<PairLink>,
    /// The machine of each device, numbered in order; empty if the file lists no machines.
    pub machines: Vec<usize>,
    /// The network between machines, if stated.
    pub network: Option<Link>,
    /// The host of the first machine.
    pub host: DeviceProfile,
    /// The link of the host to each device, if stated.
    pub host_link: Option<Link>,
    /// The calibration, if any.
    pub calibration: Option<Calibration>,
}

impl TopologyFile {
    /// Reads a topology file.
    ///
    /// # Errors
    /// Returns an error if the text is not a topology, names an unknown card, or has an implausible number.
    pub fn from_ron(text: &str) -> Result<TopologyFile, TopologyError> {
        let place = Place::whole(text);
        let file: FileEntry<'_> = parse(place)?;
        let mut cards: Vec<Card> = Vec::new();
        for raw in file.cards.unwrap_or_default() {
            let at = place.of(raw);
            let card = parse::<CardEntry<'_>>(at)?.card(at, &cards)?;
            cards.push(card);
        }
        let entries = file.devices.unwrap_or_default();
        let mut devices: Vec<FileDevice> = Vec::new();
        let mut counts = Vec::new();
        for raw in entries {
            let at = place.of(raw);
            let entry = parse::<DeviceEntry<'_>>(at)?;
            let count = entry.count(at)?;
            let device = entry.device(at, &cards)?;
            if devices.len() + count > MAX_ENTRIES {
                return Err(at
                    .wrong(format!("the file has more than {MAX_ENTRIES} devices"))
                    .cure(format!("a plan has at most {MAX_ENTRIES} devices")));
            }
            devices.extend(std::iter::repeat_n(device, count));
            counts.push(count);
        }
        if devices.is_empty() {
            return Err(place.wrong("the list of devices is empty").cure(
                "list at least one: `devices: [(card: \"RTX 3090\")]`; `tpc devices` lists cards",
            ));
        }
        name_apart(&mut devices);
        let mut links = Vec::new();
        for raw in file.links.unwrap_or_default() {
            let at = place.of(raw);
            links.push(parse::<PairEntry<'_>>(at)?.link(at, &devices)?);
        }
        let (link, way) = match file.link {
            None => (None, None),
            Some(raw) => LinkEntry::read(raw, place)?,
        };
        if let (Some(way), Some(raw)) = (way, file.link) {
            let without = devices.iter().find(|d| d.card.is_none());
            if let Some(d) = without {
                let at = place.of(raw);
                let message = format!(
                    "the link is {} with the speed of the cards, but {} is not a card",
                    way.name(),
                    d.name
                );
                return Err(at.wrong(message).cure(
                    "state the link: `link: (bandwidth: \"25 GB/s\", latency_us: 12.0)`, or name the device's card",
                ));
            }
        }
        let mut host = match file.host {
            None => Topology::default().host,
            Some(raw) => HostEntry::read(place.of(raw))?,
        };
        let entries = file.machines.unwrap_or_default();
        let machines = FileMachines::read(&entries, file.network, devices.len(), place)?;
        host.memory = host.memory.or(machines.memory);
        let host_link = file.host_link.map(|raw| LinkEntry::figures(place.of(raw)));
        let calibration = file.calibration.map(|raw| calibration::read(place.of(raw)));
        Ok(TopologyFile {
            cards,
            devices,
            link,
            way,
            links,
            machines: machines.of,
            network: machines.network,
            host,
            host_link: host_link.transpose()?,
            calibration: calibration.transpose()?,
        })
    }

    /// Returns the position of the device of this name. Ignores case.
    pub fn named(&self, name: &str) -> Option<usize> {
        let is = |d: &FileDevice| d.name.eq_ignore_ascii_case(name.trim());
        self.devices.iter().position(is)
    }
}

/// Replaces or adds the calibration in the text of a topology file. The other text stays.
///
/// # Errors
/// Returns an error if the text is not a topology.
pub fn with_calibration(text: &str, calibration: &Calibration) -> Result<String, TopologyError> {
    let place = Place::whole(text);
    let file: FileEntry<'_> = parse(place)?;
    let written = calibration::write(calibration);
    if let Some(raw) = file.calibration {
        let (start, end) = place.of(raw).span();
        let value = written.trim_start_matches("calibration: ");
        let value = value.trim_end_matches(',');
        return Ok([&text[..start], value, &text[end..]].concat());
    }
    // Insert after the first parenthesis outside comments, because fields may be in any order.
    let opening = text.match_indices('(').take(100);
    let with = opening.map(|(at, _)| {
        let (before, after) = text.split_at(at + 1);
        format!("{before}\n    {written}{after}")
    });
    let has_it = |t: &String| {
        let read = TopologyFile::from_ron(t);
        read.is_ok_and(|f| f.calibration.is_some())
    };
    let mut with = with.filter(has_it);
    with.next().ok_or_else(|| {
        place
            .wrong("tpc cannot insert a calibration into this file")
            .cure("write the file as `Topology(devices: […])`")
    })
}

fn name_apart(devices: &mut [FileDevice]) {
    let names: Vec<String> = devices.iter().map(|d| d.name.to_lowercase()).collect();
    for (i, d) in devices.iter_mut().enumerate() {
        if names.iter().filter(|n| **n == names[i]).count() > 1 {
            d.name = format!("{}#{i}", d.name);
        }
    }
}

#[cfg(test)]
mod tests;
