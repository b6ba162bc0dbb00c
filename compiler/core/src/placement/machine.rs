//! Assembles a plan's machine from `--devices` and `--topology`: devices, links and reserves.

use tpc_diag::{Diagnostic, codes};
use tpc_passes::machine::{DeviceProfile, Link, LinkKind, Machines, Network, PairLink, Topology};

use super::cluster::ClusterList;
use super::device_item::{DeviceItem, MAX_DEVICES, cure, split_count, wrong};
use super::{DeviceKind, DeviceList, DeviceSpec, NumaNode, Reserve, Servers};
use super::{network, numa};
use crate::cards::{
    Card, CardMatch, Fabric, apart_from, between_cards, find, host_link, most_common, short_name,
    table,
};
use crate::topology::TopologyFile;

/// The options that describe the machine.
#[derive(Clone, Debug, Default)]
pub struct MachineRequest<'a> {
    /// `--devices`.
    pub list: Option<&'a DeviceList>,
    /// `--topology`.
    pub file: Option<&'a TopologyFile>,
    /// `--link`: the kind of link between cards.
    pub way: Option<LinkKind>,
    /// `--reserve`.
    pub reserve: Option<&'a Reserve>,
    /// `--host-memory`, in bytes.
    pub host_memory: Option<f64>,
    /// `--rpc`.
    pub servers: Servers,
    /// The NUMA nodes of the machine that runs the plan; empty if unknown.
    pub nodes: &'a [NumaNode],
}

/// A plan's devices, with profiles and links.
#[derive(Clone, Debug)]
pub struct Machine {
    /// The devices.
    pub devices: Vec<DeviceSpec>,
    /// Device profiles and links.
    pub topology: Topology,
    /// Notes on assumptions.
    pub notes: Vec<Diagnostic>,
}

/// Parses a device list without a topology file.
///
/// # Errors
/// Returns TPC0400 for a malformed list or unknown cards.
pub fn parse_devices(text: &str) -> Result<Vec<DeviceSpec>, Diagnostic> {
    Ok(Machine::of(&DeviceList::parse(text)?)?.devices)
}

#[derive(Clone)]
struct Member {
    name: String,
    kind: DeviceKind,
    card: Option<Card>,
    /// `None` for an unknown device.
    profile: Option<DeviceProfile>,
    file: Option<usize>,
    /// True if the topology file lists fewer devices. The profile is then the last one of the file.
    repeated: bool,
    reserve_stated: bool,
    /// The machine, if the list or the file states machines.
    machine: Option<usize>,
}

impl Member {
    fn generic(name: String, kind: DeviceKind) -> Member {
        Member {
            name,
            kind,
            card: None,
            profile: None,
            file: None,
            repeated: false,
            reserve_stated: false,
            machine: None,
        }
    }

    fn of_card(card: &Card) -> Member {
        Member {
            card: Some(card.clone()),
            profile: Some(card.profile(&card.name)),
            ..Member::generic(short_name(&card.name), DeviceKind::Generic)
        }
    }

    /// Creates the device at `position` of the file. Positions beyond the list use the last device.
    fn of_file(file: &TopologyFile, position: usize) -> Member {
        let last = file.devices.len() - 1;
        let device = &file.devices[position.min(last)];
        Member {
            card: device.card.clone(),
            profile: Some(device.profile.clone()),
            file: Some(position.min(last)),
            repeated: position > last,
            reserve_stated: device.reserve_stated,
            machine: file.machines.get(position.min(last)).copied(),
            ..Member::generic(device.name.clone(), DeviceKind::Generic)
        }
    }
}

impl Machine {
    /// Assembles a machine without a topology file.
    ///
    /// # Errors
    /// Returns TPC0400 for unknown cards.
    pub fn of(list: &DeviceList) -> Result<Machine, Diagnostic> {
        MachineRequest {
            list: Some(list),
            ..MachineRequest::default()
        }
        .machine()
    }
}

impl MachineRequest<'_> {
    /// Assembles the machine.
    ///
    /// # Errors
    /// Returns TPC0400 for a name that is neither in the file nor a card, an unsupported link, or a wrong number of
    /// reserves.
    pub fn machine(&self) -> Result<Machine, Diagnostic> {
        let mut notes = Vec::new();
        let mut members = self.members(&mut notes)?;
        if members.is_empty() || members.len() > MAX_DEVICES {
            let message = format!("unsupported number of devices: {}", members.len());
            return Err(wrong(message).help(cure()));
        }
        if self.servers.count() > 0 && members.iter().any(|m| m.machine.is_some()) {
            let message = "machines cannot be combined with RPC servers".to_owned();
            return Err(wrong(message).help("leave out --rpc, or list the devices of one machine"));
        }
        network::number(members.iter_mut().filter_map(|m| m.machine.as_mut()));
        name_apart(&mut members);
        self.reserve(&mut members)?;
        let topology = self.topology(&members, &mut notes)?;
        let listed = matches!(self.list, Some(DeviceList::Cluster(_)));
        let devices = members.into_iter().map(|m| DeviceSpec {
            name: m.name,
            kind: m.kind,
            card: m.card.map(|c| c.name),
            of_file: m.file.is_some(),
            machine: m.machine.filter(|_| listed),
        });
        Ok(Machine {
            devices: devices.collect(),
            topology,
            notes,
        })
    }

    fn members(&self, notes: &mut Vec<Diagnostic>) -> Result<Vec<Member>, Diagnostic> {
        let list = self.list.unwrap_or(&DeviceList::All);
        let items = match (list, self.file) {
            (DeviceList::Named(items), _) => items,
            (DeviceList::Cluster(cluster), _) => return self.members_of(cluster, notes),
            (DeviceList::All, Some(file)) => {
                return Ok((0..file.devices.len())
                    .map(|i| Member::of_file(file, i))
                    .collect());
            }
            (DeviceList::Count(n), Some(file)) => {
                return Ok((0..*n).map(|i| Member::of_file(file, i)).collect());
            }
            (DeviceList::All | DeviceList::Count(_), None) => {
                let n = match list {
                    DeviceList::Count(n) => *n,
                    // By default the host has one device in addition to the servers.
                    _ => 1 + self.servers.count(),
                };
                let generic = |i| Member::generic(format!("dev{i}"), DeviceKind::Generic);
                return Ok((0..n).map(generic).collect());
            }
        };
        let mut out: Vec<Member> = Vec::new();
        for item in items {
            match item {
                DeviceItem::Name(name) => {
                    let (count, member) = self.find_named(name, notes)?;
                    out.extend(std::iter::repeat_n(member, count));
                }
                DeviceItem::Numa(number) => self.add_nodes(*number, &mut out)?,
                item => out.push(self.of_item(item, out.len(), notes)?),
            }
        }
        numa::check(&nodes(&out), out.len())?;
        known_together(&out)?;
        Ok(out)
    }

    /// Adds the NUMA node of this number, or all nodes.
    fn add_nodes(&self, number: Option<u32>, out: &mut Vec<Member>) -> Result<(), Diagnostic> {
        for (n, profile) in numa::listed(number, self.nodes)? {
            let (name, kind) = (format!("numa:{n}"), DeviceKind::Numa(n));
            out.push(match self.file {
                Some(file) => Member {
                    name,
                    kind,
                    ..Member::of_file(file, out.len())
                },
                None => Member {
                    profile,
                    ..Member::generic(name, kind)
                },
            });
        }
        Ok(())
    }

    /// Lists the devices of all machines.
    fn members_of(
        &self,
        cluster: &ClusterList,
        notes: &mut Vec<Diagnostic>,
    ) -> Result<Vec<Member>, Diagnostic> {
        let mut out: Vec<Member> = Vec::new();
        let mut machine = 0;
        for group in &cluster.groups {
            for _ in 0..group.machines {
                for _ in 0..group.devices {
                    let position = out.len();
                    let member = match (&group.item, self.file) {
                        (Some(item), _) => self.of_item(item, position, notes)?,
                        (None, Some(file)) => Member::of_file(file, position),
                        (None, None) => {
                            Member::generic(format!("dev{position}"), DeviceKind::Generic)
                        }
                    };
                    out.push(Member {
                        machine: Some(machine),
                        ..member
                    });
                }
                machine += 1;
            }
        }
        known_together(&out)?;
        Ok(out)
    }

    /// Returns the device at `position` of the list. `item` names one device.
    fn of_item(
        &self,
        item: &DeviceItem,
        position: usize,
        notes: &mut Vec<Diagnostic>,
    ) -> Result<Member, Diagnostic> {
        let (name, kind) = match item {
            DeviceItem::Cpu => ("cpu".to_owned(), DeviceKind::Cpu),
            DeviceItem::Cuda(n) => (format!("cuda:{n}"), DeviceKind::Cuda(*n)),
            DeviceItem::Name(name) => return self.one(name, notes),
            DeviceItem::Numa(_) => {
                let message = "machines cannot list NUMA nodes".to_owned();
                return Err(wrong(message).help("write for example `2*2xcpu@25gbe`"));
            }
        };
        let member = match self.file {
            Some(file) => Member::of_file(file, position),
            None => Member::generic(String::new(), kind),
        };
        Ok(Member {
            name,
            kind,
            ..member
        })
    }

    fn find_named(
        &self,
        text: &str,
        notes: &mut Vec<Diagnostic>,
    ) -> Result<(usize, Member), Diagnostic> {
        let whole = self.one(text, notes);
        // Some card names, such as `7900xtx`, begin with a number.
        let Some((count, name)) = split_count(text) else {
            return Ok((1, whole?));
        };
        if let Ok(member) = whole {
            return Ok((1, member));
        }
        let member = self.one(name, notes).map_err(|d| match misread(text) {
            Some(help) => d.help(help),
            None => d,
        })?;
        if count == 0 || count > MAX_DEVICES {
            return Err(wrong(format!("unsupported number of devices: {count}")).help(cure()));
        }
        Ok((count, member))
    }

    fn one(&self, name: &str, notes: &mut Vec<Diagnostic>) -> Result<Member, Diagnostic> {
        if let Some(file) = self.file
            && let Some(position) = file.named(name)
        {
            return Ok(Member::of_file(file, position));
        }
        let own = self.file.map_or(&[][..], |f| f.cards.as_slice());
        match find(name, own, table()) {
            CardMatch::Card(card) => Ok(Member::of_card(card)),
            CardMatch::Meant { card, others } => {
                let message = format!("`{name}` is read as {}", card.name);
                let help = match others.as_slice() {
                    [] => format!("write `{}` to be explicit", short_name(&card.name)),
                    others => format!("other matches: {}; write the full name", others.join(", ")),
                };
                let note = Diagnostic::new(&codes::CARD_ASSUMED, "--devices", message).help(help);
                if !notes.contains(&note) {
                    notes.push(note);
                }
                Ok(Member::of_card(card))
            }
            CardMatch::Several(names) => Err(wrong(format!("`{name}` matches several cards"))
                .help(format!("write one of {}", names.join(", ")))),
            CardMatch::Unknown(near) => {
                let shown = tpc_diag::suggest::shorten(name);
                if let Some(help) = misread(name) {
                    return Err(
                        wrong(format!("`{shown}` is neither a device nor a card")).help(help)
                    );
                }
                let listed = self.file.map(|f| {
                    let names: Vec<&str> = f.devices.iter().map(|d| d.name.as_str()).collect();
                    format!("the topology's devices are {}; ", names.join(", "))
                });
                let near = match near.as_slice() {
                    [] => String::new(),
                    near => format!("did you mean {}? ", near.join(" or ")),
                };
                let help = format!("{near}{}{}", listed.unwrap_or_default(), cure());
                Err(wrong(format!("`{shown}` is neither a device nor a card")).help(help))
            }
        }
    }

    /// Sets the reserves to `--reserve`, else to the file's, else to 1 GiB (0 for a CPU).
    fn reserve(&self, members: &mut [Member]) -> Result<(), Diagnostic> {
        let given = self.reserve.map(|r| r.among(members.len())).transpose()?;
        for (i, m) in members.iter_mut().enumerate() {
            let Some(profile) = &mut m.profile else {
                continue;
            };
            match (&given, m.kind) {
                (Some(given), _) => profile.reserve = given[i],
                (None, kind) if kind.is_processor() && !m.reserve_stated => profile.reserve = 0.0,
                (None, _) => {}
            }
        }
        Ok(())
    }

    fn topology(
        &self,
        members: &[Member],
        notes: &mut Vec<Diagnostic>,
    ) -> Result<Topology, Diagnostic> {
        let processors: Vec<bool> = members.iter().map(|m| m.kind.is_processor()).collect();
        let machines = self.machines(members, notes);
        let mut out = match self.file {
            Some(_) => Topology::default(),
            None => Topology::for_unnamed_machines(&processors, &machines),
        };
        out.machines = machines;
        let listed = members.iter().take_while(|m| !m.repeated);
        let profiles: Vec<DeviceProfile> = listed.filter_map(|m| m.profile.clone()).collect();
        let cards: Option<Vec<&Card>> = members.iter().map(|m| m.card.as_ref()).collect();
        if let Some(file) = self.file {
            out.host = file.host.clone();
            out.calibration = file.calibration;
        }
        if self.host_memory.is_some() {
            out.host.memory = self.host_memory;
        }
        match (self.file.and_then(|f| f.host_link), &cards) {
            (Some(link), _) => out.host_link = link,
            (None, Some(cards)) => {
                let links = cards.iter().map(|c| host_link(c));
                out.host_link = links.reduce(Link::bottleneck).unwrap_or(out.host_link);
            }
            (None, None) => {}
        }
        if !profiles.is_empty() {
            out.devices = profiles;
            self.links(members, &mut out, notes)?;
            if self.file.is_none() {
                numa::join(&mut out, &nodes(members), self.nodes);
            }
        } else if let Some(way) = self.way {
            return Err(not_of_cards(way));
        }
        let network = |a: usize, b: usize| {
            let of_card = |m: usize| members[m].card.as_ref().and_then(|c| c.network);
            let fast = of_card(a).zip(of_card(b)).map(|(a, b)| a.min(b));
            let link = fast.map_or(Link::network(), |rate| Link::of(LinkKind::Network, rate));
            (!self.states_link(members, a, b)).then_some(link)
        };
        network::join(&mut out, members.len(), &self.servers, &network);
        Ok(out)
    }

    /// Returns the machines that the list or the file states, and notes a network that is assumed: the slowest that
    /// the cards come with, or else 10 Gbit/s.
    fn machines(&self, members: &[Member], notes: &mut Vec<Diagnostic>) -> Machines {
        let of: Vec<usize> = members.iter().map(|m| m.machine.unwrap_or(0)).collect();
        let named = match self.list {
            Some(DeviceList::Cluster(list)) => list.network.and_then(Network::named),
            _ => None,
        };
        let stated = named.map(|n| n.link).or(self.file.and_then(|f| f.network));
        let own = members
            .iter()
            .map(|m| m.card.as_ref().and_then(|c| c.network));
        let own = own.reduce(|a, b| a.zip(b).map(|(a, b)| a.min(b))).flatten();
        let assumed = own.map_or(Link::network(), |rate| Link::of(LinkKind::Network, rate));
        let out = Machines::new(of, stated.unwrap_or(assumed));
        if stated.is_none() && !out.is_one() {
            let message = format!(
                "tpc assumes a network of {:.0} Gbit/s and {:.0} µs between the machines",
                assumed.bandwidth * 8.0 / 1e9,
                assumed.latency_us
            );
            let d = Diagnostic::new(&codes::LINK_ASSUMED, "--devices", message);
            let help = format!(
                "add the network to --devices, such as `@ib-ndr`, or `network: \"ib-ndr\"` to the topology file; the \
                 networks are {}",
                Network::names()
            );
            notes.push(d.help(help));
        }
        out
    }

    fn states_link(&self, members: &[Member], a: usize, b: usize) -> bool {
        let Some(file) = self.file.filter(|_| self.way.is_none()) else {
            return false;
        };
        file.link.is_some() || self.states_pair(members, a, b)
    }

    /// True if the file has a link for this pair.
    fn states_pair(&self, members: &[Member], a: usize, b: usize) -> bool {
        let ends = (members[a].file, members[b].file);
        let is = |p: &PairLink| (Some(p.a), Some(p.b)) == ends || (Some(p.b), Some(p.a)) == ends;
        let file = self.file.filter(|_| self.way.is_none());
        file.is_some_and(|f| f.links.iter().any(is))
    }

    /// Sets the links to `--link`, else to the file's, else to the cards' own.
    fn links(
        &self,
        members: &[Member],
        out: &mut Topology,
        notes: &mut Vec<Diagnostic>,
    ) -> Result<(), Diagnostic> {
        let way = self.way.or(self.file.and_then(|f| f.way));
        let cards: Option<Vec<&Card>> = members.iter().map(|m| m.card.as_ref()).collect();
        if let Some(way) = way {
            let Some(cards) = &cards else {
                return Err(not_of_cards(way));
            };
            if way.is_fabric() && cards.iter().all(|c| c.fabric.is_none()) {
                return Err(without_fabric(cards, way));
            }
        }
        let file = self.file.filter(|_| self.way.is_none());
        let stated = file.and_then(|f| f.link);
        let before = |i: usize| {
            let name = |m: &Member| m.card.as_ref().map(|c| c.name.clone());
            let same = members[..i]
                .iter()
                .filter(|m| m.machine == members[i].machine && name(m) == name(&members[i]));
            same.count()
        };
        let ordinals: Vec<usize> = (0..members.len()).map(before).collect();
        let of_kind =
            |i: usize, j: usize, ordinals: [usize; 2]| match (&members[i].card, &members[j].card) {
                _ if stated.is_some() => stated.unwrap_or(out.link),
                (Some(a), Some(b)) => between_cards((a, ordinals[0]), (b, ordinals[1]), way),
                _ => out.link,
            };
        let pair = |i: usize, j: usize| {
            let ends = (members[i].file, members[j].file);
            let of_file = file
                .filter(|_| !members[i].repeated && !members[j].repeated)
                .and_then(|f| {
                    f.links
                        .iter()
                        .find(|p| (Some(p.a), Some(p.b)) == ends || (Some(p.b), Some(p.a)) == ends)
                });
            of_file.map_or_else(|| of_kind(i, j, [ordinals[i], ordinals[j]]), |p| p.link)
        };
        let alone = of_kind(0, 0, [0, 1]);
        let all = (0..members.len()).flat_map(|a| (a + 1..members.len()).map(move |b| (a, b)));
        let same =
            |&(a, b): &(usize, usize)| out.machines.of_device(a) == out.machines.of_device(b);
        let (inside, across): (Vec<_>, Vec<_>) = all.partition(same);
        let (link, mut links) = match stated {
            Some(stated) => apart_from(&inside, &pair, stated),
            None => most_common(&inside, &pair, alone),
        };
        let across = across
            .into_iter()
            .filter(|&(a, b)| self.states_pair(members, a, b));
        links.extend(across.map(|(a, b)| PairLink {
            a,
            b,
            link: pair(a, b),
        }));
        (out.link, out.links) = (link, links);
        if way.is_none()
            && stated.is_none()
            && file.is_none_or(|f| f.links.is_empty())
            && let Some(cards) = cards
        {
            notes.extend(bridge_note(&cards, link));
        }
        Ok(())
    }
}

/// Returns the numbers of the members' NUMA nodes.
fn nodes(members: &[Member]) -> Vec<u32> {
    let number = |m: &Member| match m.kind {
        DeviceKind::Numa(n) => Some(n),
        _ => None,
    };
    members.iter().filter_map(number).collect()
}

/// Checks that the memory of all devices is known, or of none.
///
/// # Errors
/// Returns TPC0400 if only some devices have a known memory.
fn known_together(members: &[Member]) -> Result<(), Diagnostic> {
    let unknown = members.iter().find(|m| m.profile.is_none());
    if let (Some(unknown), Some(known)) = (unknown, members.iter().find(|m| m.profile.is_some())) {
        let message = format!(
            "the list mixes {}, whose memory is unknown, with the card {}",
            unknown.name, known.name
        );
        return Err(wrong(message).help(
            "name all cards, or describe all devices in a topology file (--topology); to keep weights on the host, \
             use -ngl, -ncmoe or -ot",
        ));
    }
    Ok(())
}

/// Appends `#` and the position to the names of CPUs, CUDA devices and cards outside the file, and to equal names.
fn name_apart(members: &mut [Member]) {
    let names: Vec<String> = members.iter().map(|m| m.name.to_lowercase()).collect();
    for (i, m) in members.iter_mut().enumerate() {
        let alike = names.iter().filter(|n| **n == names[i]).count() > 1;
        // Logical devices may be on one physical device.
        let numbered = m.kind != DeviceKind::Generic || (m.card.is_some() && m.file.is_none());
        if alike || numbered {
            m.name = format!("{}#{i}", m.name);
        }
    }
}

fn not_of_cards(way: LinkKind) -> Diagnostic {
    let message = format!("tpc knows the speed of {} only between cards", way.name());
    let d = Diagnostic::new(&codes::COMMAND_LINE, "--link", message);
    d.help("name cards, such as `--devices 2x3090`, or state the links in a topology file (--topology)")
}

fn without_fabric(cards: &[&Card], way: LinkKind) -> Diagnostic {
    let mut names: Vec<&str> = cards.iter().map(|c| c.name.as_str()).collect();
    names.dedup();
    let message = format!("{} does not support {}", names.join(" or "), way.name());
    let d = Diagnostic::new(&codes::COMMAND_LINE, "--link", message);
    d.help("leave out --link, or use pcie (copies go through the host) or pcie-p2p (from card to card)")
}

fn bridge_note(cards: &[&Card], link: Link) -> Option<Diagnostic> {
    let bridged = |c: &&&Card| matches!(c.fabric, Some(Fabric::Bridge { .. }));
    let card = cards.iter().find(bridged)?;
    let same = cards.iter().filter(|c| c.name == card.name).count();
    if same < 2 {
        return None;
    }
    let how = match link.kind {
        LinkKind::PciePeer => "from card to card",
        _ => "through the host's memory",
    };
    let message = format!(
        "tpc assumes that copies between {same} × {} go over PCI Express {how}",
        card.name
    );
    let d = Diagnostic::new(&codes::LINK_ASSUMED, "--devices", message);
    Some(d.help("use `--link nvlink` if bridges join the cards, `--link pcie-p2p` if the driver copies between cards"))
}

/// Returns help for a list of counts, or for cards joined by `+` or `&`.
fn misread(name: &str) -> Option<String> {
    if name.parse().is_ok_and(|n: usize| n <= MAX_DEVICES) {
        let help = "give one count, such as --devices 2; to compare plans: --devices 2 --devices 4";
        return Some(help.to_owned());
    }
    let parts: Vec<&str> = name.split(['+', '&']).map(str::trim).collect();
    let all = parts.len() > 1 && parts.iter().all(|p| !p.is_empty());
    all.then(|| format!("separate cards by commas: `{}`", parts.join(",")))
}

#[cfg(test)]
mod tests;
