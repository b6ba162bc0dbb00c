use tpc_ir::Code;
use tpc_passes::machine::{Link, LinkKind, Topology};

use super::{Check, Command, EntityKind, Lint};
use tpc_core::placement::Placement;
use tpc_diag::{Diagnostic, Quantity, message};

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Option,
    code: Code::warning(
        "TPC0908",
        "the links to remote devices are assumed",
        "The command uses devices of other machines (`--rpc`) without describing the network. tpc assumes 10 Gbit/s \
         and 50 µs, or the faster network that the machine comes with. The speed estimate depends on it.",
    )
    .example("`--rpc 10.0.0.2:50052`.")
    .cure("give `--topology` with the network's bandwidth and latency, before the `--`."),
    check: Check::Command(check),
};

fn check(command: &Command<'_>, out: &mut Vec<Diagnostic>) {
    // A line that names devices uses only these.
    if let Some(servers) = command.line.servers() {
        out.extend(assumed_network(command.placement, &servers.join(",")));
    }
}

pub(crate) fn assumed_network(placement: &Placement, servers: &str) -> Option<Diagnostic> {
    let link = assumed_link(&placement.topology, placement.devices.len())?;
    let message = message!(
        "the links to {} are not stated: tpc assumes {} GB/s and {} µs",
        servers,
        Quantity(format!("{:.2}", link.bandwidth / 1e9)),
        Quantity(format!("{:.0}", link.latency_us))
    );
    let help = "give --topology FILE.ron with the network's bandwidth and latency, before the `--`";
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
        topology.machines.is_one() || topology.is_remote(a) || topology.is_remote(b)
    };
    let links = pairs
        .filter(apart)
        .map(|(a, b)| topology.link_between(a, b));
    links.filter(is_assumed).reduce(Link::bottleneck)
}
