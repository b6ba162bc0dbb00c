use tpc_ir::Code;

use super::{Check, EntityKind, Lint, Plan};
use tpc_core::format::bytes;
use tpc_core::placement::Placement;
use tpc_diag::{Diagnostic, Quantity, message};

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Option,
    code: Code::warning(
        "TPC0804",
        "batches larger than the context",
        "`--ubatch-size` exceeds the context. No batch can be that large, but every device reserves memory for it.",
    )
    .example("`-c 2048 -ub 4096`.")
    .cure("lower `-ub` to `-c`."),
    check: Check::Plan(check),
};

fn check(plan: &Plan<'_>, out: &mut Vec<Diagnostic>) {
    let (batch, context) = (plan.placement.ubatch_size, plan.compiled.caches.n_ctx);
    // The default batch is meant for long contexts.
    if batch > context && batch != Placement::UBATCH {
        let most = plan
            .report
            .devices
            .iter()
            .map(|d| d.compute_bytes)
            .max()
            .unwrap_or(0);
        let message = message!(
            "batches of {} tokens exceed the context of {} cells; a device reserves up to {} for them",
            batch,
            context,
            Quantity(bytes(most))
        );
        let help = message!("-ub {}", context);
        out.push(LINT.finding("--ubatch-size", message).help(help));
    }
}
