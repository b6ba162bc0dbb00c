//! The links between cards.
//!
//! Cards on a board with a switch use the switch. Bridges are sold separately, so tpc assumes one only with `--link
//! nvlink`. Copies over PCI Express go from card to card if the cards have one vendor and the driver permits it.
//! Otherwise they go through the host's memory, as two copies at half the speed.

use tpc_passes::machine::{Link, LinkKind, PairLink};

use super::{Card, Fabric};

/// Returns the link to the host.
pub fn host_link(card: &Card) -> Link {
    let bandwidth = card.host_bandwidth.unwrap_or_else(|| card.pcie.bandwidth());
    Link::new(bandwidth, 10.0)
}

fn pcie(a: &Card, b: &Card, kind: LinkKind) -> Link {
    let bandwidth = a.pcie.bandwidth().min(b.pcie.bandwidth());
    match kind {
        LinkKind::PciePeer => Link::of(kind, bandwidth),
        _ => Link::of(LinkKind::PcieHost, bandwidth / 2.0),
    }
}

/// Returns the link between two cards, each with the number of earlier cards of this name. `way` is the kind of link
/// that the user requests. Bridges are used only on request.
pub fn between_cards(a: (&Card, usize), b: (&Card, usize), way: Option<LinkKind>) -> Link {
    if way == Some(LinkKind::Network) {
        return Link::network();
    }
    let wants_fabric = way.is_some_and(LinkKind::is_fabric);
    if let (Some(fa), Some(fb)) = (a.0.fabric, b.0.fabric)
        && (way.is_none() || wants_fabric)
        && a.0.vendor == b.0.vendor
    {
        let bandwidth = fa.bandwidth().min(fb.bandwidth()) / 2.0;
        let same_board = a.1 / fa.devices() == b.1 / fb.devices() && a.0.name == b.0.name;
        match (fa, fb) {
            (Fabric::Switch { .. }, Fabric::Switch { .. }) if same_board => {
                return Link::of(LinkKind::NvSwitch, bandwidth);
            }
            (Fabric::Mesh { .. }, Fabric::Mesh { .. }) if same_board => {
                return Link::of(LinkKind::NvLink, bandwidth);
            }
            (Fabric::Bridge { .. }, Fabric::Bridge { .. }) if same_board && wants_fabric => {
                return Link::of(LinkKind::NvLink, bandwidth);
            }
            _ => {}
        }
    }
    let peers = a.0.peer && b.0.peer && a.0.vendor == b.0.vendor;
    let kind = match way {
        Some(LinkKind::PciePeer) => LinkKind::PciePeer,
        Some(LinkKind::PcieHost) => LinkKind::PcieHost,
        _ if peers => LinkKind::PciePeer,
        _ => LinkKind::PcieHost,
    };
    pcie(a.0, b.0, kind)
}

/// Finds the most common link between pairs of devices, and the pairs with another link. Prefers the slower of equally
/// common links. `alone` is the link of a single device.
pub fn most_common(
    pairs: &[(usize, usize)],
    pair: &dyn Fn(usize, usize) -> Link,
    alone: Link,
) -> (Link, Vec<PairLink>) {
    let mut counts: Vec<(Link, usize)> = Vec::new();
    for &(i, j) in pairs {
        let link = pair(i, j);
        match counts.iter_mut().find(|(l, _)| *l == link) {
            Some((_, n)) => *n += 1,
            None => counts.push((link, 1)),
        }
    }
    let common = counts.iter().max_by_key(|(l, n)| (*n, l.kind));
    apart_from(pairs, pair, common.map_or(alone, |(l, _)| *l))
}

/// Returns a link, and the pairs with another link.
pub fn apart_from(
    pairs: &[(usize, usize)],
    pair: &dyn Fn(usize, usize) -> Link,
    common: Link,
) -> (Link, Vec<PairLink>) {
    let all = pairs.iter().map(|&(a, b)| PairLink {
        a,
        b,
        link: pair(a, b),
    });
    (common, all.filter(|p| p.link != common).collect())
}

#[cfg(test)]
mod tests {
    use super::super::{CardMatch, find, table};
    use super::*;

    fn card(name: &str) -> &'static Card {
        match find(name, &[], table()) {
            CardMatch::Card(c) | CardMatch::Meant { card: c, .. } => c,
            other => panic!("{name}: {other:?}"),
        }
    }

    fn between(names: &[&str], way: Option<LinkKind>) -> (Link, Vec<PairLink>) {
        let cards: Vec<&Card> = names.iter().map(|n| card(n)).collect();
        let before = |i: usize| {
            cards[..i]
                .iter()
                .filter(|c| c.name == cards[i].name)
                .count()
        };
        let pair =
            |i: usize, j: usize| between_cards((cards[i], before(i)), (cards[j], before(j)), way);
        let alone = between_cards((cards[0], 0), (cards[0], 1), way);
        let n = cards.len();
        let pairs = (0..n).flat_map(|i| (i + 1..n).map(move |j| (i, j)));
        most_common(&pairs.collect::<Vec<_>>(), &pair, alone)
    }

    #[test]
    fn a_board_with_a_switch_has_it_between_all() {
        for n in [1, 2, 4, 8] {
            let (link, pairs) = between(&vec!["H100"; n], None);
            assert_eq!((link.kind, link.bandwidth), (LinkKind::NvSwitch, 450e9));
            assert!(pairs.is_empty(), "{pairs:?}");
        }
        // Two boards, joined by network cards.
        let (link, pairs) = between(&["H100"; 16], None);
        assert_eq!(link.kind, LinkKind::PciePeer);
        assert_eq!(pairs.len(), 2 * 28);
        assert!(
            pairs
                .iter()
                .all(|p| p.link.kind == LinkKind::NvSwitch && p.a / 8 == p.b / 8)
        );
        let (link, _) = between(&["V100"; 4], None);
        assert_eq!((link.kind, link.bandwidth), (LinkKind::NvLink, 150e9));
    }

    #[test]
    fn consumer_cards_copy_through_the_host() {
        for name in ["3090", "4090", "5090", "7900 XTX", "B580"] {
            let (link, _) = between(&[name, name], None);
            assert_eq!(link.kind, LinkKind::PcieHost, "{name}");
        }
        let (host, _) = between(&["4090", "4090"], None);
        let (peer, _) = between(&["4090", "4090"], Some(LinkKind::PciePeer));
        assert_eq!(peer.kind, LinkKind::PciePeer);
        assert_eq!(peer.bandwidth, 2.0 * host.bandwidth);
        // 0.8 of the 31.5 GB/s of 16 lanes of generation 4.
        assert!((peer.bandwidth - 25.2e9).abs() < 0.1e9, "{peer:?}");
        let (link, _) = between(&["A6000", "A6000"], None);
        assert_eq!(link.kind, LinkKind::PciePeer);
        let (link, _) = between(&["4060 Ti", "4090"], Some(LinkKind::PciePeer));
        assert!((link.bandwidth - 12.6e9).abs() < 0.1e9, "{link:?}");
        let (link, _) = between(&["A6000", "W7900"], None);
        assert_eq!(link.kind, LinkKind::PcieHost);
    }

    #[test]
    fn a_bridge_joins_two_cards_on_demand() {
        let (link, pairs) = between(&["3090", "3090"], Some(LinkKind::NvLink));
        assert_eq!((link.kind, link.bandwidth), (LinkKind::NvLink, 56.25e9));
        assert!(pairs.is_empty());
        let (link, pairs) = between(&["3090"; 4], Some(LinkKind::NvLink));
        assert_eq!(link.kind, LinkKind::PcieHost);
        let joined: Vec<[usize; 2]> = pairs.iter().map(|p| [p.a, p.b]).collect();
        assert_eq!(joined, [[0, 1], [2, 3]]);
        // Cards of one kind are counted at any position.
        let (_, pairs) = between(&["3090", "4090", "3090"], Some(LinkKind::NvLink));
        let joined: Vec<[usize; 2]> = pairs.iter().map(|p| [p.a, p.b]).collect();
        assert_eq!(joined, [[0, 2]]);
    }
}
