//! Devices, or the host, with too little memory.

use tpc_ir::Code;

use super::{Check, EntityKind, Lint, Plan};
use tpc_core::format::bytes;
use tpc_diag::{Diagnostic, Message, Quantity, message};

/// The declaration of the lint.
pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Device,
    code: Code::error(
        "TPC0300",
        "a device's memory is too small",
        "The plan needs more bytes on a device (or the host) than its memory has without its reserve (`--reserve`). \
         The message says by how much. \
         `tpc plan` tries smaller contexts, smaller caches, experts or layers on the host and other shares, \
         plans each, and names those that fit.",
    )
    .example("`--devices 2x3070`, two cards of 8 GiB, and a model of 40 GB.")
    .cure("one of the options named, or more devices."),
    check: Check::Plan(check),
};

fn check(plan: &Plan<'_>, out: &mut Vec<Diagnostic>) {
    let mut help: Option<Message> = None;
    for d in plan.report.devices.iter().chain([&plan.report.host]) {
        if let Some(capacity) = d.capacity_bytes
            && d.total_bytes > capacity.saturating_sub(d.reserve_bytes)
        {
            let [needs, has, reserve] =
                [d.total_bytes, capacity, d.reserve_bytes].map(|n| Quantity(bytes(n)));
            let usable = capacity.saturating_sub(d.reserve_bytes);
            let excess = Quantity(bytes(d.total_bytes - usable));
            let message = match d.reserve_bytes {
                0 => message!("needs {} but has {}: {} too many", needs, has, excess),
                _ => message!(
                    "needs {} but has {}, of which {} are reserved: {} too many",
                    needs,
                    has,
                    reserve,
                    excess
                ),
            };
            // The search for cures plans several times, so it runs at most once.
            let help = help.get_or_insert_with(|| cure(plan));
            out.push(LINT.finding(&d.name, message).help(help.clone()));
        }
    }
}

/// The changes that make the plan fit, where they are searched for; otherwise the options to try.
fn cure(plan: &Plan<'_>) -> Message {
    let Some(search) = plan.cures.filter(|_| !plan.compiled.fits()) else {
        return "more devices, a smaller --ctx-size, smaller cache types, or another --tensor-split".into();
    };
    let found = search();
    if found.is_empty() {
        return "more devices: no smaller context or cache, and nothing on the host, makes it fit"
            .into();
    }
    format!("each of these fits: {}", found.join("; ")).into()
}
