//! A search that did not see everything.

use tpc_ir::CodeDoc;

use super::{Check, Lint, Names, Plan};
use tpc_diag::Diagnostic;

/// The lint.
pub(crate) const LINT: Lint = Lint {
    names: Names::Plan,
    doc: CodeDoc {
        code: "TPC0303",
        title: "the choice of splits is not proven cheapest",
        doc: "A layer has more compatible sets of splits than the search prices. The plan is sound, and the cheapest of\n\
              those that were priced. The message says by how much it may cost more than the cheapest of all, at\n\
              most: every op is given the splits that suit it best, whatever the others get.\nCure: none is needed.",
    },
    check: Check::Plan(check),
};

fn check(plan: &Plan<'_>, out: &mut Vec<Diagnostic>) {
    let choice = plan.compiled.choice();
    if !choice.optimal {
        let percent = (100.0 * choice.excess()).ceil();
        let message = format!(
            "{} sets of splits were priced, not all: the plan costs at most {percent:.0} % more than the cheapest",
            choice.priced
        );
        out.push(Diagnostic::note("TPC0303", "plan", message));
    }
}
