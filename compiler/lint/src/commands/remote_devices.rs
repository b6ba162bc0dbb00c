//! Devices on other machines.

use tpc_ir::Code;
use tpc_passes::machine::{Link, LinkKind, Topology};

use super::{Check, Command, EntityKind, Lint};
use tpc_core::placement::Placement;
use tpc_diag::{Diagnostic, Quantity, message};

/// The declaration of the lint.
pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Option,
    code: Code::warning(
        "TPC0908",
        "devices behind a network",
        "The command uses devices of other machines (`--rpc`), and nobody states how they are joined. tpc plans a network of 10 \
         Gbit/s and 50 µs between machines; of machines that are sold with a faster one, that one. The estimate of speed rests \
         on it.",
    )
    .example("`--rpc 10.0.0.2:50052`.")
    .cure("`--topology` with the bandwidth and latency of the network, before the `--`."),
    check: Check::Command(check),
};

fn check(command: &Command<'_>, out: &mut Vec<Diagnostic>) {
    // If the line names devices, only those are used.
    if let Some(servers) = command.line.servers() {
        out.extend(assumed_network(command.placement, &servers.join(",")));
    }
}

/// Returns the finding for unspecified links to servers.
pub(crate) fn assumed_network(placement: &Placement, servers: &str) -> Option<Diagnostic> {
    let link = assumed_link(&placement.topology, placement.devices.len())?;
    let message = message!(
        "the links to {} are not stated: tpc plans {} GB/s and {} µs",
        servers,
        Quantity(format!("{:.2}", link.bandwidth / 1e9)),
        Quantity(format!("{:.0}", link.latency_us))
    );
    let help =
        "give --topology FILE.ron, before the `--`, with the network's bandwidth and latency";
    Some(LINT.finding("--rpc", message).help(help))
}

/// Returns the slowest assumed link between machines.
fn assumed_link(topology: &Topology, devices: usize) -> Option<Link> {
    let is_assumed = |link: &Link| {
        let network =
            link.kind == LinkKind::Network && link.latency_us == Link::network().latency_us;
        network || *link == Topology::default().link
    };
    let pairs = (0..devices).flat_map(|a| (a + 1..devices).map(move |b| (a, b)));
    let apart = |&(a, b): &(usize, usize)| {
        topology.away.is_empty() || topology.is_remote(a) || topology.is_remote(b)
    };
    let links = pairs
        .filter(apart)
        .map(|(a, b)| topology.link_between(a, b));
    links.filter(is_assumed).reduce(Link::bottleneck)
}
