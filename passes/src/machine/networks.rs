use super::{Link, LinkKind};

/// A network between machines, by name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Network {
    /// The name in `--devices` and in topology files.
    pub name: &'static str,
    /// The link of a machine to the network, in each direction.
    pub link: Link,
}

const fn network(name: &'static str, gbit: f64, latency_us: f64) -> Network {
    let link = Link {
        bandwidth: gbit * 1e9 / 8.0,
        latency_us,
        kind: LinkKind::Network,
    };
    Network { name, link }
}

/// The known networks, slowest first: name, Gbit/s in each direction, and µs before the first byte arrives.
///
/// Rates are line rates of one port. Ethernet: IEEE 802.3 (10GBASE to 400GBASE). InfiniBand: the roadmap of the
/// InfiniBand Trade Association for four lanes (EDR 100, HDR 200, NDR 400, XDR 800 Gbit/s;
/// <https://www.infinibandta.org/infiniband-roadmap/>).
///
/// A latency is for data in a device's memory, so it includes copies to the network card. InfiniBand: 14 µs, the
/// latency of NCCL's `Simple` protocol over a network in NCCL's tuning model
/// (<https://github.com/NVIDIA/nccl/blob/master/src/graph/tuning.cc>). Ethernet: TCP through the kernel, 50 µs at
/// 10 Gbit/s, which tpc assumes also for RPC servers. Faster Ethernet cards take 40 or 30 µs; both are assumptions.
pub static NETWORKS: [Network; 10] = [
    network("10gbe", 10.0, 50.0),
    network("25gbe", 25.0, 40.0),
    network("40gbe", 40.0, 40.0),
    network("100gbe", 100.0, 30.0),
    network("ib-edr", 100.0, 14.0),
    network("200gbe", 200.0, 30.0),
    network("ib-hdr", 200.0, 14.0),
    network("400gbe", 400.0, 30.0),
    network("ib-ndr", 400.0, 14.0),
    network("ib-xdr", 800.0, 14.0),
];

impl Network {
    /// Returns the network with this name. Ignores case, blanks, dashes and underscores.
    pub fn named(text: &str) -> Option<&'static Network> {
        let squeeze = |t: &str| {
            let kept = t.chars().filter(char::is_ascii_alphanumeric);
            kept.collect::<String>().to_ascii_lowercase()
        };
        let wanted = squeeze(text);
        NETWORKS.iter().find(|n| squeeze(n.name) == wanted)
    }

    /// Returns the network that has this link.
    pub fn of_link(link: Link) -> Option<&'static Network> {
        NETWORKS.iter().find(|n| n.link == link)
    }

    /// Returns all names, separated by commas.
    pub fn names() -> String {
        NETWORKS.map(|n| n.name).join(", ")
    }

    /// Returns the next networks with a higher bandwidth and at most the latency, slowest first.
    pub fn faster_than(link: Link) -> impl Iterator<Item = &'static Network> {
        let is_faster = move |n: &&Network| {
            n.link.bandwidth > link.bandwidth && n.link.latency_us <= link.latency_us
        };
        NETWORKS.iter().filter(is_faster)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_have_names() {
        assert_eq!(Network::named("IB NDR").map(|n| n.name), Some("ib-ndr"));
        assert_eq!(
            Network::named("10GbE").map(|n| n.link),
            Some(Link::network())
        );
        assert_eq!(Network::named("ethernet"), None);
        assert_eq!(
            Network::of_link(Link::network()).map(|n| n.name),
            Some("10gbe")
        );
        for n in &NETWORKS {
            assert_eq!(Network::named(n.name), Some(n));
        }
        let slowest_first = |w: &[Network]| w[0].link.bandwidth <= w[1].link.bandwidth;
        assert!(NETWORKS.windows(2).all(slowest_first));
        let ndr = Network::named("ib-ndr").expect("a network").link;
        let faster: Vec<&str> = Network::faster_than(ndr).map(|n| n.name).collect();
        assert_eq!(faster, ["ib-xdr"]);
    }
}
