//! Contexts that are shared by too many.

use tpc_ir::Code;

use super::{Check, EntityKind, Lint, Plan};
use tpc_diag::{Diagnostic, message};

/// The lint.
pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Option,
    code: Code::warning(
        "TPC0806",
        "few cells per sequence",
        "`--parallel` sequences share the cells of `--ctx-size`. If all are used alike, each has less than 1024 \
         tokens for its prompt and its answer, though the model could take more.",
    )
    .example("`-c 4096 -np 16`: 256 tokens each.")
    .cure("a context of as many times what one sequence needs, or fewer sequences."),
    check: Check::Plan(check),
};

fn check(plan: &Plan<'_>, out: &mut Vec<Diagnostic>) {
    let (context, n) = (plan.compiled.caches.n_ctx, plan.placement.parallel);
    let trained = plan.compiled.model.summary.n_ctx_train;
    let each = context / n.max(1);
    if n > 1 && each < trained.min(1024) {
        let message = message!(
            "{} cells for {} sequences: {} each, of a model of {}",
            context,
            n,
            each,
            trained
        );
        let help = message!("-c {} gives each 4096", n.saturating_mul(4096));
        out.push(LINT.finding("--parallel", message).help(help));
    }
}
