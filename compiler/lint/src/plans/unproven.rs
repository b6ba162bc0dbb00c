use tpc_ir::Code;

use super::{Check, EntityKind, Lint, Plan};
use tpc_diag::{Diagnostic, Quantity, message};

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Plan,
    code: Code::note(
        "TPC0303",
        "the splits are not proven cheapest",
        "A layer has more compatible assignments of splits than the search prices. The plan is correct and the \
         cheapest of the priced plans; the message bounds its excess over the cheapest plan.",
    )
    .cure("no action needed."),
    check: Check::Plan(check),
};

fn check(plan: &Plan<'_>, out: &mut Vec<Diagnostic>) {
    let choice = plan.compiled.choice();
    if !choice.optimal {
        let percent = (100.0 * choice.excess()).ceil();
        let message = message!(
            "the search priced {} assignments, not all: the plan costs at most {} % more than the cheapest",
            choice.priced,
            Quantity(format!("{percent:.0}"))
        );
        out.push(LINT.finding("plan", message));
    }
}
