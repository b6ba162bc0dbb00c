//! Topologies that are too short.

use tpc_ir::Code;

use super::{Check, EntityKind, Lint, Plan};
use tpc_diag::{Diagnostic, message};

/// The lint.
pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Option,
    code: Code::warning(
        "TPC0809",
        "more devices than the topology lists",
        "The topology file lists fewer devices than `--devices` asks for: the last one's profile is taken for \
         the rest. If these are other devices, shares and memories are wrong.",
    )
    .example("a file of one device, used for four different ones.")
    .cure("list each device, or take care that all are alike."),
    check: Check::Plan(check),
};

fn check(plan: &Plan<'_>, out: &mut Vec<Diagnostic>) {
    let (listed, used) = (
        plan.placement.topology.devices.len(),
        plan.placement.devices.len(),
    );
    // One profile for all is how files of alike devices are written.
    if listed > 1 && listed < used {
        let last = &plan.placement.topology.devices[listed - 1].name;
        let message = message!(
            "{} devices are listed, {} used: {} stands for the last {}",
            listed,
            used,
            last,
            used - listed + 1
        );
        out.push(LINT.finding("--topology", message).help("list each device"));
    }
}
