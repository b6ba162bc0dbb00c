//! Devices, or the host, without the memory for their part.

use tpc_ir::CodeDoc;

use super::{Check, Lint, Names, Plan};
use tpc_core::format::bytes;
use tpc_diag::Diagnostic;

/// The lint.
pub(crate) const LINT: Lint = Lint {
    names: Names::Device,
    doc: CodeDoc {
        code: "TPC0300",
        title: "a device's memory is too small",
        doc: "The plan needs more bytes on a device (or the host) than the topology file gives it. The message says by\n\
              how much; `tpc plan` tries smaller contexts, smaller caches, experts or layers on the host and other\n\
              shares, plans each, and names those that fit.\n\
              Example: `--topology` with `memory: Some(8e9)` and a model of 40 GB on two devices.\n\
              Cure: one of the options named, or more devices.",
    },
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
            out.push(Diagnostic::error("TPC0300", &d.name, message).help(
                "more devices, a smaller --ctx-size, smaller cache types, or another --tensor-split",
            ));
        }
    }
}
