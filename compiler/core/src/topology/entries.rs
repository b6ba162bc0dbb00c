//! Entries of a topology file. Values stay text until the kind of the entry is known.

use ron::value::RawValue;
use serde::Deserialize;
use tpc_passes::machine::{
    CardClass, DeviceProfile, Link, LinkKind, MemoryKind, PairLink, Processor, Topology,
};

use super::card::{card_named, name_of_card};
use super::device::{FileDevice, MAX_ENTRIES};
use super::error::{Place, TopologyError};
use super::value::{Raw, amount, flag, link, link_kind, memory_kind, number, positive, words};
use crate::cards::{Card, Fabric, MemorySource, Pcie, RESERVE, class_of_name};
use crate::units::Unit;

/// Defines an entry of a topology file: a RON struct of this name with optional fields, kept as text.
macro_rules! entry {
    ($(#[$doc:meta])* $vis:vis struct $entry:ident as $name:literal { $($field:ident),* }) => {
        $(#[$doc])*
        #[derive(Deserialize)]
        #[serde(rename = $name, deny_unknown_fields)]
        $vis struct $entry<'a> {
            $(
                #[serde(borrow, default)]
                $field: Raw<'a>,
            )*
        }
    };
}

#[derive(Deserialize)]
#[serde(rename = "Topology", deny_unknown_fields)]
pub(super) struct FileEntry<'a> {
    #[serde(borrow, default)]
    pub(super) devices: Option<Vec<&'a RawValue>>,
    #[serde(borrow, default)]
    pub(super) cards: Option<Vec<&'a RawValue>>,
    #[serde(borrow, default)]
    pub(super) link: Raw<'a>,
    #[serde(borrow, default)]
    pub(super) links: Option<Vec<&'a RawValue>>,
    #[serde(borrow, default)]
    pub(super) machines: Option<Vec<&'a RawValue>>,
    #[serde(borrow, default)]
    pub(super) network: Raw<'a>,
    #[serde(borrow, default)]
    pub(super) host: Raw<'a>,
    #[serde(borrow, default)]
    pub(super) host_link: Raw<'a>,
    #[serde(borrow, default)]
    pub(super) calibration: Raw<'a>,
}

entry! {
    pub(super) struct CardEntry as "Card" {
        name, like, memory, bandwidth, flops, int8, units, clock_mhz, memory_kind, pcie_gen, pcie_lanes, p2p,
        nvlink
    }
}

impl CardEntry<'_> {
    /// Returns the card. Missing figures come from the card named by `like`.
    pub(super) fn card(&self, at: Place<'_>, own: &[Card]) -> Result<Card, TopologyError> {
        let Some(name) = words("name", self.name, at)? else {
            return Err(at.wrong("the card lacks a name").cure("add `name: \"…\"`"));
        };
        let like = words("like", self.like, at)?;
        let like = like.map(|l| card_named(&l, at.of_field(self.like), own));
        let mut card = match like.transpose()? {
            Some(like) => Card {
                aliases: Vec::new(),
                note: None,
                ..like
            },
            None => plain(at, self)?,
        };
        card.name = name;
        "the topology file".clone_into(&mut card.source);
        if let Some(memory) = positive("memory", self.memory, Unit::Bytes, at)? {
            (card.memory, card.memory_source) = (memory, MemorySource::Stated);
            card.nominal_gib = None;
        }
        if let Some(bandwidth) = positive("bandwidth", self.bandwidth, Unit::BytesPerSecond, at)? {
            card.bandwidth = bandwidth;
        }
        if let Some(flops) = positive("flops", self.flops, Unit::OpsPerSecond, at)? {
            (card.flops, card.fp16) = (flops, Some(flops));
        }
        self.processor(at, &mut card)?;
        if let Some(n) = number("pcie_gen", self.pcie_gen, at)? {
            card.pcie.r#gen = number_within(n, 1.0, 8.0, "pcie_gen", at.of_field(self.pcie_gen))?;
        }
        if let Some(n) = number("pcie_lanes", self.pcie_lanes, at)? {
            card.pcie.lanes =
                number_within(n, 1.0, 32.0, "pcie_lanes", at.of_field(self.pcie_lanes))?;
        }
        if let Some(peer) = flag("p2p", self.p2p, at)? {
            card.peer = peer;
        }
        if let Some(bandwidth) = positive("nvlink", self.nvlink, Unit::BytesPerSecond, at)? {
            card.fabric = Some(match card.fabric {
                Some(Fabric::Bridge { devices, .. }) => Fabric::Bridge { bandwidth, devices },
                Some(Fabric::Mesh { devices, .. }) => Fabric::Mesh { bandwidth, devices },
                Some(Fabric::Switch { devices, .. }) => Fabric::Switch { bandwidth, devices },
                None => Fabric::Switch {
                    bandwidth,
                    devices: 8,
                },
            });
        }
        Ok(card)
    }

    /// Sets the processor. Units, clock and memory must be given together.
    fn processor(&self, at: Place<'_>, card: &mut Card) -> Result<(), TopologyError> {
        let int8 = positive("int8", self.int8, Unit::OpsPerSecond, at)?;
        let units = number("units", self.units, at)?;
        let units = units.map(|n| number_within(n, 1.0, 1e5, "units", at.of_field(self.units)));
        let clock = number("clock_mhz", self.clock_mhz, at)?;
        let memory = memory_kind("memory_kind", self.memory_kind, at)?;
        let before = card.processor;
        let units = units.transpose()?.or(before.map(|p| p.units));
        let clock = clock.map(|mhz| mhz * 1e6).or(before.map(|p| p.clock));
        let memory = memory.or(before.map(|p| p.memory));
        if let (Some(units), Some(clock), Some(memory)) = (units, clock, memory) {
            card.processor = Some(Processor {
                units,
                clock,
                memory,
                int8: int8.or(before.and_then(|p| p.int8)),
                ported: before.and_then(|p| p.ported),
            });
        } else if units.is_some() || clock.is_some() || memory.is_some() || int8.is_some() {
            return Err(at
                .wrong("the card has only some of units, clock_mhz and memory_kind")
                .cure("add the missing fields, or `like: \"RTX 3090\"`, or leave out all three"));
        }
        Ok(())
    }
}

fn plain(at: Place<'_>, entry: &CardEntry<'_>) -> Result<Card, TopologyError> {
    let stated = [
        ("memory", entry.memory),
        ("bandwidth", entry.bandwidth),
        ("flops", entry.flops),
    ];
    missing(at, &stated, "`like: \"RTX 3090\"`")?;
    Ok(Card {
        name: String::new(),
        aliases: Vec::new(),
        vendor: None,
        arch: None,
        capability: None,
        memory: 0.0,
        memory_source: MemorySource::Stated,
        nominal_gib: None,
        bandwidth: 0.0,
        flops: 0.0,
        fp16: None,
        processor: None,
        pcie: Pcie {
            r#gen: 4,
            lanes: 16,
        },
        peer: false,
        fabric: None,
        host_bandwidth: None,
        network: None,
        source: String::new(),
        note: None,
    })
}

fn missing(at: Place<'_>, fields: &[(&str, Raw<'_>)], instead: &str) -> Result<(), TopologyError> {
    let lacks: Vec<&str> = fields
        .iter()
        .filter(|(_, raw)| raw.is_none())
        .map(|(name, _)| *name)
        .collect();
    if lacks.is_empty() {
        return Ok(());
    }
    let message = format!(
        "{} missing",
        match lacks.as_slice() {
            [one] => format!("`{one}` is"),
            several => format!("`{}` are", several.join("` and `")),
        }
    );
    Err(at
        .wrong(message)
        .cure(format!("add them, or {instead}; `tpc devices` lists cards")))
}

fn number_within(
    n: f64,
    low: f64,
    high: f64,
    field: &str,
    at: Place<'_>,
) -> Result<u32, TopologyError> {
    if n.fract() == 0.0 && (low..=high).contains(&n) {
        return Ok(n as u32);
    }
    let cure = format!("write a whole number from {low} to {high}");
    Err(at.wrong(format!("{field} cannot be {n}")).cure(cure))
}

fn fill(
    profile: &mut DeviceProfile,
    [memory, bandwidth, flops]: [Raw<'_>; 3],
    at: Place<'_>,
) -> Result<(), TopologyError> {
    if let Some(bytes) = positive("memory", memory, Unit::Bytes, at)? {
        profile.memory = Some(bytes);
    }
    if let Some(rate) = positive("bandwidth", bandwidth, Unit::BytesPerSecond, at)? {
        profile.bandwidth = rate;
    }
    if let Some(rate) = positive("flops", flops, Unit::OpsPerSecond, at)? {
        profile.flops = rate;
    }
    Ok(())
}

entry! {
    /// One device, or several equal devices.
    pub(super) struct DeviceEntry as "Device" {
        card, name, count, memory, reserve, bandwidth, flops, pcie_lanes, processor
    }
}

impl DeviceEntry<'_> {
    pub(super) fn count(&self, at: Place<'_>) -> Result<usize, TopologyError> {
        let Some(n) = number("count", self.count, at)? else {
            return Ok(1);
        };
        let at = at.of_field(self.count);
        Ok(number_within(n, 1.0, MAX_ENTRIES as f64, "count", at)? as usize)
    }

    pub(super) fn device(&self, at: Place<'_>, own: &[Card]) -> Result<FileDevice, TopologyError> {
        let card = words("card", self.card, at)?;
        let card = card.map(|c| card_named(&c, at.of_field(self.card), own));
        let mut card = card.transpose()?;
        let name = words("name", self.name, at)?;
        let mut profile = match &card {
            Some(card) => card.profile(name.as_ref().unwrap_or(&card.name)),
            None => {
                let stated = [("bandwidth", self.bandwidth), ("flops", self.flops)];
                missing(at, &stated, "`card: \"RTX 3090\"`")?;
                DeviceProfile {
                    name: name.clone().unwrap_or_else(|| "device".to_owned()),
                    memory: None,
                    reserve: 0.0,
                    beside: 0.0,
                    pool: None,
                    bandwidth: 0.0,
                    flops: 0.0,
                    processor: None,
                    class: name.as_deref().map_or(CardClass::Unknown, class_of_name),
                }
            }
        };
        fill(&mut profile, [self.memory, self.bandwidth, self.flops], at)?;
        if let (Some(n), Some(card)) = (number("pcie_lanes", self.pcie_lanes, at)?, &mut card) {
            card.pcie.lanes =
                number_within(n, 1.0, 32.0, "pcie_lanes", at.of_field(self.pcie_lanes))?;
        }
        if let Some(raw) = self.processor {
            profile.processor = Some(processor(at.of(raw))?);
        }
        let is_shared = (profile.processor).is_some_and(|p| p.memory == MemoryKind::Shared);
        // A stated memory limits the plan. The pool includes the host's bytes unless the host's memory is stated too.
        profile.pool = match (self.memory, profile.pool) {
            _ if !is_shared => None,
            (None, Some(pool)) => Some(pool),
            _ => profile.memory,
        };
        let reserve = amount("reserve", self.reserve, Unit::Bytes, at)?;
        profile.reserve = match (reserve, profile.memory) {
            (Some(reserve), _) => reserve,
            (None, Some(_)) => RESERVE,
            (None, None) => 0.0,
        };
        let unnamed = card
            .as_ref()
            .map_or_else(|| profile.name.clone(), name_of_card);
        Ok(FileDevice {
            name: name.unwrap_or(unnamed),
            profile,
            card,
            reserve_stated: reserve.is_some(),
        })
    }
}

entry! {
    /// A processor in the syntax of earlier files.
    struct ProcessorEntry as "Processor" { units, clock, memory, int8 }
}

fn processor(at: Place<'_>) -> Result<Processor, TopologyError> {
    let entry: ProcessorEntry<'_> = super::error::parse(at)?;
    let units = number("units", entry.units, at)?;
    let clock = number("clock", entry.clock, at)?;
    let memory = memory_kind("memory", entry.memory, at)?;
    let int8 = positive("int8", entry.int8, Unit::OpsPerSecond, at)?;
    match (units, clock, memory) {
        (Some(units), Some(clock), Some(memory)) if clock > 0.0 => Ok(Processor {
            units: number_within(units, 1.0, 1e5, "units", at)?,
            clock,
            memory,
            int8,
            ported: None,
        }),
        _ => Err(at
            .wrong("the processor lacks units, a clock above 0 or a memory kind")
            .cure("write `processor: (units: 82, clock: 1.7e9, memory: Gddr)`, or leave it out")),
    }
}

entry! {
    pub(super) struct HostEntry as "Host" { name, memory, reserve, bandwidth, flops }
}

impl HostEntry<'_> {
    /// Reads the host. Missing figures are defaults.
    pub(super) fn read(at: Place<'_>) -> Result<DeviceProfile, TopologyError> {
        let entry: HostEntry<'_> = super::error::parse(at)?;
        let bandwidth = positive("bandwidth", entry.bandwidth, Unit::BytesPerSecond, at)?;
        let mut out = bandwidth.map_or_else(|| Topology::default().host, DeviceProfile::host);
        if let Some(name) = words("name", entry.name, at)? {
            out.name = name;
        }
        fill(&mut out, [entry.memory, None, entry.flops], at)?;
        out.reserve = amount("reserve", entry.reserve, Unit::Bytes, at)?.unwrap_or(0.0);
        Ok(out)
    }
}

entry! {
    pub(super) struct LinkEntry as "Link" { bandwidth, latency_us, kind }
}

impl LinkEntry<'_> {
    /// Reads a link, stated by figures or by kind alone.
    pub(super) fn read(
        raw: &RawValue,
        within: Place<'_>,
    ) -> Result<(Option<Link>, Option<LinkKind>), TopologyError> {
        let at = within.of(raw);
        if at.text().starts_with('(') || at.text().starts_with("Link") {
            return Ok((Some(LinkEntry::figures(at)?), None));
        }
        match words("link", Some(raw), within)? {
            None => Ok((None, None)),
            Some(name) => Ok((None, Some(kind(&name, at)?))),
        }
    }

    pub(super) fn figures(at: Place<'_>) -> Result<Link, TopologyError> {
        let entry: LinkEntry<'_> = super::error::parse(at)?;
        let bandwidth = positive("bandwidth", entry.bandwidth, Unit::BytesPerSecond, at)?;
        let Some(bandwidth) = bandwidth else {
            let cure = "write `link: (bandwidth: \"25 GB/s\", latency_us: 12.0)`, or between cards `link: \"nvlink\"`";
            return Err(at.wrong("the link lacks a bandwidth").cure(cure));
        };
        let latency_us = number("latency_us", entry.latency_us, at)?;
        let named = words("kind", entry.kind, at)?;
        let kind = named
            .map(|k| kind(&k, at.of_field(entry.kind)))
            .transpose()?;
        Ok(link(bandwidth, latency_us, kind.unwrap_or_default()))
    }
}

fn kind(name: &str, at: Place<'_>) -> Result<LinkKind, TopologyError> {
    link_kind(name).ok_or_else(|| {
        let known = LinkKind::STATED.map(LinkKind::name).join(", ");
        at.wrong(format!(
            "unknown link `{}`",
            tpc_diag::suggest::shorten(name)
        ))
        .cure(format!("write one of {known}"))
    })
}

entry! {
    pub(super) struct PairEntry as "PairLink" { a, b, link }
}

impl PairEntry<'_> {
    /// Reads a link. Devices are given by position or name.
    pub(super) fn link(
        &self,
        at: Place<'_>,
        devices: &[FileDevice],
    ) -> Result<PairLink, TopologyError> {
        let a = device_position("a", self.a, at, devices)?;
        let b = device_position("b", self.b, at, devices)?;
        if a == b {
            let cure = "name two devices";
            return Err(at.wrong("a link joins a device to itself").cure(cure));
        }
        let Some(raw) = self.link else {
            let cure = "add `link: (bandwidth: \"50 GB/s\", latency_us: 8.0)`";
            return Err(at.wrong("`link` is missing").cure(cure));
        };
        let (stated, way) = LinkEntry::read(raw, at)?;
        let between = match (way, &devices[a].card, &devices[b].card) {
            (Some(way), Some(ca), Some(cb)) => {
                Some(crate::cards::between_cards((ca, 0), (cb, 0), Some(way)))
                    .filter(|l| l.kind.is_fabric() == way.is_fabric())
            }
            _ => None,
        };
        match stated.or(between) {
            Some(link) => Ok(PairLink { a, b, link }),
            None => Err(at
                .of(raw)
                .wrong("the speed of this link is unknown")
                .cure("add it: `link: (bandwidth: \"50 GB/s\", latency_us: 8.0)`")),
        }
    }
}

fn device_position(
    field: &str,
    raw: Raw<'_>,
    at: Place<'_>,
    devices: &[FileDevice],
) -> Result<usize, TopologyError> {
    let names: Vec<&str> = devices.iter().map(|d| d.name.as_str()).collect();
    let listed = || {
        format!(
            "devices are 0 to {}, or {}",
            names.len() - 1,
            names.join(", ")
        )
    };
    let Some(value) = raw else {
        return Err(at.wrong(format!("`{field}` is missing")).cure(listed()));
    };
    let text = value.trim().get_ron();
    let found = match text.parse::<usize>() {
        Ok(n) => (n < devices.len()).then_some(n),
        Err(_) => words(field, raw, at)?
            .and_then(|w| names.iter().position(|n| n.eq_ignore_ascii_case(w.trim()))),
    };
    found.ok_or_else(|| {
        let shown = tpc_diag::suggest::shorten(text);
        at.of(value)
            .wrong(format!(
                "a link names device {shown}, which is not in the list"
            ))
            .cure(listed())
    })
}
