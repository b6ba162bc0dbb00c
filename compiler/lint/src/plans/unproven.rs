//! A search that stopped before it was complete.

use tpc_ir::Code;

use super::{Check, EntityKind, Lint, Plan};
use tpc_diag::{Diagnostic, Quantity, message};

/// The declaration of the lint.
pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Plan,
    code: Code::note(
        "TPC0303",
        "the choice of splits is not proven cheapest",
        "A layer has more compatible assignments of splits than the search prices. The plan is sound, and the \
         cheapest of those priced. The message bounds the excess over the cheapest of all: the bound gives every \
         op the splits that suit it best, regardless of the others.",
    )
    .cure("none is needed."),
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
