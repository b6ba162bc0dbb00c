use tpc_ir::Code;
use tpc_passes::rewrite::StopReason;

use super::{Check, EntityKind, Lint, Plan};
use tpc_diag::{Diagnostic, message};

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Plan,
    code: Code::note(
        "TPC0314",
        "rewriting stopped at a limit",
        "The rules that move and merge copies and collectives reached the limit of rounds or terms. The plan is \
         correct, but may have unnecessary transfers. `tpc dump --stage rewrite` shows the layers.",
    )
    .cure("no action needed; please report the model: the limits are too low."),
    check: Check::Plan(check),
};

fn check(plan: &Plan<'_>, out: &mut Vec<Diagnostic>) {
    let report = &plan.compiled.rewriting;
    let stopped = report
        .sections
        .iter()
        .filter(|r| r.stop != StopReason::Saturated);
    for section in stopped {
        let message = message!(
            "rewriting {} {} after {} rounds, with {} terms",
            match section.layers.iter().flatten().next() {
                Some(&layer) =>
                    message!("layer {} and {} like it", layer, section.layers.len() - 1),
                None => "the ops before the layers".into(),
            },
            section.stop.to_string(),
            section.iterations,
            section.nodes
        );
        out.push(LINT.finding("plan", message));
    }
}
