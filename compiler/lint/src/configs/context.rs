//! A context longer than the model was trained for.

use tpc_ir::Code;

use super::{Check, EntityKind, Lint, Plan};
use tpc_diag::{Diagnostic, message};

/// The declaration of the lint.
pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Option,
    code: Code::warning(
        "TPC0312",
        "the context is longer than the model's",
        "`--ctx-size` asks for more cells than the context that the model's file states. The cache takes the \
         memory, but the model has not learnt to attend that far.",
    )
    .example("`-c 262144` for a model of 131072.")
    .cure("the model's context, or a file whose metadata scales the rotation (`rope.scaling`)."),
    check: Check::Plan(check),
};

fn check(plan: &Plan<'_>, out: &mut Vec<Diagnostic>) {
    let (asked, trained) = (
        plan.compiled.caches.n_ctx,
        plan.compiled.model.summary.n_ctx_train,
    );
    // Several sequences share the cells.
    if asked > trained.saturating_mul(plan.placement.parallel) && trained > 0 {
        let message = message!(
            "{} cells exceed the {} positions that the model was trained for",
            asked,
            trained
        );
        out.push(
            LINT.finding("--ctx-size", message)
                .help(message!("-c {}", trained)),
        );
    }
}
