//! Several plans side by side.

use super::one::{Plan, Search, has_errors};
use super::{Args, Job};
use crate::output::{self, Failure};
use tpc_core::report::{Compared, PlanReport};
use tpc_diag::{Diagnostic, Severity, codes};

/// What came of a job.
struct Outcome {
    path: String,
    devices: String,
    plan: Result<PlanReport, Failure>,
}

impl Outcome {
    fn of(args: &Args, job: &Job) -> Outcome {
        let plan = Plan::new(args, job).map(|plan| plan.report(job, Search::Nothing));
        let devices = match job.placement.devices() {
            Some(Ok(lists)) => lists.text,
            Some(Err(_)) => "?".to_owned(),
            None => "1".to_owned(),
        };
        Outcome {
            path: job.source.path(),
            devices,
            plan,
        }
    }

    fn compared(&self) -> Compared<'_> {
        Compared {
            path: &self.path,
            devices: &self.devices,
            plan: match &self.plan {
                Ok(report) => Ok(report),
                Err(failure) => Err(&failure.diagnostics),
            },
        }
    }

    /// The exit status that it asks for by itself.
    fn status(&self) -> u8 {
        match &self.plan {
            Ok(report) => u8::from(has_errors(&report.diagnostics)),
            Err(failure) => failure.status,
        }
    }

    /// Errors and warnings; notes are for a plan by itself.
    fn diagnostics(&self) -> impl Iterator<Item = &Diagnostic> {
        let all = match &self.plan {
            Ok(report) => &report.diagnostics,
            Err(failure) => &failure.diagnostics,
        };
        all.iter().filter(|d| d.severity != Severity::Note)
    }
}

/// An option that one plan takes and several do not.
fn alone(option: &str) -> Failure {
    let message = format!("{option} is for one plan, and several are asked for");
    let d = Diagnostic::new(&codes::COMMAND_LINE, option, message);
    Failure::usage(d.help("give one model, one --devices and one -c"))
}

pub(super) fn run(args: &Args, jobs: &[Job]) -> Result<(), Failure> {
    let single = [
        ("--html", args.html.is_some()),
        ("--diff", args.diff.is_some()),
        ("--why", !args.why.is_empty()),
    ];
    if let Some((option, _)) = single.iter().find(|(_, given)| *given) {
        return Err(alone(option));
    }
    let outcomes: Vec<Outcome> = jobs.iter().map(|job| Outcome::of(args, job)).collect();
    let compared: Vec<Compared<'_>> = outcomes.iter().map(Outcome::compared).collect();
    output::result(&args.format.several(&compared)?)?;
    for (i, outcome) in outcomes.iter().enumerate() {
        for d in outcome.diagnostics() {
            output::diagnostic(&Diagnostic {
                message: format!("plan {}: {d}", i + 1).into(),
                ..d.clone()
            });
        }
    }
    match outcomes.iter().map(Outcome::status).max() {
        None | Some(0) => Ok(()),
        Some(status) => Err(Failure {
            diagnostics: Vec::new(),
            status,
        }),
    }
}
