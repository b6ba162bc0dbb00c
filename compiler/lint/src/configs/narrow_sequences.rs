use tpc_ir::Code;

use super::{Check, EntityKind, Lint, Plan};
use tpc_diag::{Diagnostic, message};

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Option,
    code: Code::warning(
        "TPC0806",
        "few cells per sequence",
        "`--parallel` sequences share the cells of `--ctx-size`. Each has fewer than 1024 cells for its prompt and \
         answer, although the model supports more.",
    )
    .example("`-c 4096 -np 16`: 256 tokens each.")
    .cure("use a larger context, or fewer sequences."),
    check: Check::Plan(check),
};

fn check(plan: &Plan<'_>, out: &mut Vec<Diagnostic>) {
    let (context, n) = (plan.compiled.caches.n_ctx, plan.placement.parallel);
    let trained = plan.compiled.model.summary.n_ctx_train;
    let each = context / n.max(1);
    if n > 1 && each < trained.min(1024) {
        let message = message!(
            "{} cells for {} sequences give {} to each; the model supports {}",
            context,
            n,
            each,
            trained
        );
        let enough = trained.min(4096);
        let help = message!("-c {} gives each {}", n.saturating_mul(enough), enough);
        out.push(LINT.finding("--parallel", message).help(help));
    }
}
