//! A context beyond what the model was trained for.

use tpc_ir::CodeDoc;

use super::{Check, Lint, Names, Plan};
use tpc_diag::Diagnostic;

/// The lint.
pub(crate) const LINT: Lint = Lint {
    names: Names::Option,
    doc: CodeDoc {
        code: "TPC0312",
        title: "the context is longer than the model's",
        doc: "`--ctx-size` asks for more cells than the context that the model's file states. The cache takes the memory,\n\
              but the model has not learnt to attend that far.\n\
              Example: `-c 262144` for a model of 131072.\n\
              Cure: the model's context, or a file whose metadata scales the rotation (`rope.scaling`).",
    },
    check: Check::Plan(check),
};

fn check(plan: &Plan<'_>, out: &mut Vec<Diagnostic>) {
    let (asked, trained) = (
        plan.compiled.caches.n_ctx,
        plan.compiled.model.summary.n_ctx_train,
    );
    // Several sequences share the cells.
    if asked > trained.saturating_mul(plan.placement.parallel) && trained > 0 {
        let message = format!("{asked} cells for a model of {trained} positions");
        out.push(
            Diagnostic::warning("TPC0312", "--ctx-size", message).help(format!("-c {trained}")),
        );
    }
}
