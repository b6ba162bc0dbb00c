//! Contexts that are shared by too many.

use tpc_ir::Code;

use super::{Check, EntityKind, Lint, Plan};
use tpc_diag::Diagnostic;

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
        let message =
            format!("{context} cells for {n} sequences: {each} each, of a model of {trained}");
        let help = format!("-c {} gives each 4096", n.saturating_mul(4096));
        out.push(Diagnostic::new(&LINT.code, "--parallel", message).help(help));
    }
}
