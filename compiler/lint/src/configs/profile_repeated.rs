use tpc_ir::Code;

use super::{Check, EntityKind, Lint, Plan};
use tpc_diag::{Diagnostic, message};

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Option,
    code: Code::warning(
        "TPC0809",
        "more devices than the topology lists",
        "The topology file lists fewer devices than `--devices` requests, so tpc uses the last profile for the others. \
         If they differ, shares and memory figures are wrong.",
    )
    .example("a file with one device, used for four different devices.")
    .cure("list each device, or check that all devices are the same."),
    check: Check::Plan(check),
};

fn check(plan: &Plan<'_>, out: &mut Vec<Diagnostic>) {
    let (listed, used) = (
        plan.placement.topology.devices.len(),
        plan.placement.devices.len(),
    );
    // A single profile is the usual way to describe identical devices.
    if listed > 1 && listed < used {
        let last = &plan.placement.topology.devices[listed - 1].name;
        let message = message!(
            "the topology lists {} of {} devices: {} is used for the last {}",
            listed,
            used,
            last,
            used - listed + 1
        );
        out.push(LINT.finding("--topology", message).help("list each device"));
    }
}
