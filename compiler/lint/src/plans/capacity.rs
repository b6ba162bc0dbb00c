//! Devices, or the host, without the memory for their part.

use tpc_ir::Code;

use super::{Check, EntityKind, Lint, Plan};
use tpc_core::format::bytes;
use tpc_diag::Diagnostic;

/// The lint.
pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Device,
    code: Code::error(
        "TPC0300",
        "a device's memory is too small",
        "The plan needs more bytes on a device (or the host) than the topology file gives it. The message says \
         by how much; `tpc plan` tries smaller contexts, smaller caches, experts or layers on the host and other \
         shares, plans each, and names those that fit.",
    )
    .example("`--topology` with `memory: Some(8e9)` and a model of 40 GB on two devices.")
    .cure("one of the options named, or more devices."),
    check: Check::Plan(check),
};

fn check(plan: &Plan<'_>, out: &mut Vec<Diagnostic>) {
    for d in plan.report.devices.iter().chain([&plan.report.host]) {
        if let Some(capacity) = d.capacity_bytes
            && d.total_bytes > capacity
        {
            let message = format!(
                "needs {} but has {}: {} too many",
                bytes(d.total_bytes),
                bytes(capacity),
                bytes(d.total_bytes - capacity)
            );
            out.push(Diagnostic::new(&LINT.code, &d.name, message).help(
                "more devices, a smaller --ctx-size, smaller cache types, or another --tensor-split",
            ));
        }
    }
}
