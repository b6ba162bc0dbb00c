//! A search that did not see everything.

use tpc_ir::Code;

use super::{Check, EntityKind, Lint, Plan};
use tpc_diag::{Diagnostic, Quantity, message};

/// The lint.
pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Plan,
    code: Code::note(
        "TPC0303",
        "the choice of splits is not proven cheapest",
        "A layer has more compatible sets of splits than the search prices. The plan is sound, and the cheapest \
         of those that were priced. The message says by how much it may cost more than the cheapest of all, at \
         most: every op is given the splits that suit it best, whatever the others get.",
    )
    .cure("none is needed."),
    check: Check::Plan(check),
};

fn check(plan: &Plan<'_>, out: &mut Vec<Diagnostic>) {
    let choice = plan.compiled.choice();
    if !choice.optimal {
        let percent = (100.0 * choice.excess()).ceil();
        let message = message!(
            "{} sets of splits were priced, not all: the plan costs at most {} % more than the cheapest",
            choice.priced,
            Quantity(format!("{:.0}", percent))
        );
        out.push(LINT.finding("plan", message));
    }
}
