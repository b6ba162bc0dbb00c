//! `--emit`: a configuration that starts another engine with the plan.

use super::Args;
use crate::output::{self, Failure};
use tpc_core::placement::Placement;
use tpc_core::report::PlanReport;
use tpc_core::report::emit::{Deployment, Emitter};
use tpc_diag::{Diagnostic, codes};

/// Prints the file of a target.
pub(super) fn print(
    args: &Args,
    target: &Emitter,
    plan: (&PlanReport, &Placement),
) -> Result<(), Failure> {
    let folder = std::env::current_dir().map_err(|e| {
        let message = format!("the current folder cannot be read: {e}");
        let d = Diagnostic::new(&codes::FILE_ACCESS, "--emit", message);
        Failure::usage(d.help("change to another folder"))
    })?;
    let text = Deployment::new(target, plan, &folder, args.emit_image.as_deref())
        .and_then(|deployment| target.emit(&deployment));
    output::result(&text.map_err(|d| Failure::findings(vec![d]))?)
}
