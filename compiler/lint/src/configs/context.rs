use tpc_ir::Code;

use super::{Check, EntityKind, Lint, Plan};
use tpc_diag::{Diagnostic, Quantity, message};
use tpc_models::Stretch;

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Option,
    code: Code::warning(
        "TPC0312",
        "the context is longer than the model's",
        "`--ctx-size` exceeds the context in the model's file. The cache takes the memory, but the model was not \
         trained for it. RoPE scaling extends the context to the original context × the factor: in the file \
         (`rope.scaling`), or by llama.cpp's `--rope-scaling`, `--rope-scale` and `--yarn-orig-ctx`.",
    )
    .example("`-c 262144` for a model of 131072.")
    .cure("use the model's context, or a file with RoPE scaling (`rope.scaling`)."),
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
                "{} cells exceed the {} positions of the scaled RoPE: {} × {}",
                asked,
                reach,
                original,
                Quantity(format!("{}", (factor * 100.0).round() / 100.0))
            )
        }
        None => {
            message!(
                "{} cells exceed the model's {} trained positions",
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
