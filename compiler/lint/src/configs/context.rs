//! A context longer than the model was trained for.

use tpc_ir::Code;

use super::{Check, EntityKind, Lint, Plan};
use tpc_diag::{Diagnostic, Quantity, message};
use tpc_models::Stretch;

/// The declaration of the lint.
pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Option,
    code: Code::warning(
        "TPC0312",
        "the context is longer than the model's",
        "`--ctx-size` asks for more cells than the context that the model's file states. The cache takes the \
         memory, but the model has not learnt to attend that far. Scaling of the rotation counts, in the file \
         (`rope.scaling`) and in options of llama.cpp (`--rope-scaling`, `--rope-scale`, `--yarn-orig-ctx`): it reaches the \
         original context times the factor.",
    )
    .example("`-c 262144` for a model of 131072.")
    .cure("the model's context, or a file whose metadata scales the rotation (`rope.scaling`)."),
    check: Check::Plan(check),
};

fn check(plan: &Plan<'_>, out: &mut Vec<Diagnostic>) {
    let summary = &plan.compiled.model.summary;
    let (asked, trained) = (plan.compiled.caches.n_ctx, summary.n_ctx_train);
    let stretch = plan.placement.stretch.or(summary.stretch);
    let reach = stretch.map_or(trained, Stretch::reach);
    // Several sequences share the cells.
    if asked <= reach.saturating_mul(plan.placement.parallel) || trained == 0 {
        return;
    }
    let message = match stretch.filter(|s| s.factor > 1.0) {
        Some(Stretch { original, factor }) => {
            message!(
                "{} cells exceed the {} positions that the scaled rotation reaches: {} × {}",
                asked,
                reach,
                original,
                Quantity(format!("{}", (factor * 100.0).round() / 100.0))
            )
        }
        None => {
            message!(
                "{} cells exceed the {} positions that the model was trained for",
                asked,
                reach
            )
        }
    };
    out.push(
        LINT.finding("--ctx-size", message)
            .help(message!("-c {}", reach)),
    );
}
