//! Devices of other machines.

use tpc_ir::Code;
use tpc_passes::machine::Topology;

use super::{Check, Command, EntityKind, Lint};
use tpc_diag::{Diagnostic, Quantity, message};
use tpc_ggml::llama_cpp::Setting;

/// The declaration of the lint.
pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Option,
    code: Code::warning(
        "TPC0908",
        "devices behind a network",
        "The command uses devices of other machines (`--rpc`). Unless a topology states otherwise, tpc plans the \
         links to them as fast as links within a machine, so the estimate is far too optimistic.",
    )
    .example("`--rpc 10.0.0.2:50052`.")
    .cure("`--topology` with the bandwidth and latency of the network, before the `--`."),
    check: Check::Command(check),
};

fn check(command: &Command<'_>, out: &mut Vec<Diagnostic>) {
    let Some(servers) = command.line.value(Setting::Rpc) else {
        return;
    };
    // Where devices are named, these are the ones that are used.
    let named = command.line.value(Setting::Devices);
    if named.is_some_and(|list| !list.to_ascii_uppercase().contains("RPC")) {
        return;
    }
    if command.placement.topology == Topology::default() {
        let link = command.placement.topology.link;
        let message = message!(
            "the devices of {} are planned with local links of {} GB/s and {} µs",
            servers,
            Quantity(format!("{:.0}", link.bandwidth / 1e9)),
            Quantity(format!("{:.0}", link.latency_us))
        );
        let help =
            "give --topology FILE.ron, before the `--`, with the network's bandwidth and latency";
        out.push(LINT.finding("--rpc", message).help(help));
    }
}
