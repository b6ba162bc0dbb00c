use tpc_ir::Code;

use super::{Check, EntityKind, Lint, Plan};
use tpc_diag::{Diagnostic, message};

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Option,
    code: Code::warning(
        "TPC0805",
        "prompts in very small batches",
        "`--ubatch-size` is below 32, so a prompt takes many steps, each of which reads all weights. That saves \
         memory, but prompts take many times as long.",
    )
    .example("`-ub 8`: a prompt of 4096 tokens reads the weights 512 times.")
    .cure("use `-ub 256` or more."),
    check: Check::Plan(check),
};

fn check(plan: &Plan<'_>, out: &mut Vec<Diagnostic>) {
    let batch = plan.placement.ubatch_size;
    let context = plan.compiled.caches.n_ctx;
    if batch < 32 && context >= 1024 {
        let message = message!(
            "a prompt of {} tokens reads the weights {} times",
            context,
            context.div_ceil(batch)
        );
        out.push(
            LINT.finding("--ubatch-size", message)
                .help("use -ub 256 or more"),
        );
    }
}
