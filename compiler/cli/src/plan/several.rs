//! Several plans in one table.

use super::one::{Plan, Search, has_errors};
use super::{Args, Job};
use crate::output::{self, Failure};
use tpc_core::format::span;
use tpc_core::report::{ComparedPlan, PlanReport};
use tpc_diag::{Diagnostic, Severity, codes};

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

    fn compared(&self) -> ComparedPlan<'_> {
        ComparedPlan {
            path: &self.path,
            devices: &self.devices,
            plan: match &self.plan {
                Ok(report) => Ok(report),
                Err(failure) => Err(&failure.diagnostics),
            },
        }
    }

    fn status(&self) -> u8 {
        match &self.plan {
            Ok(report) => u8::from(has_errors(&report.diagnostics)),
            Err(failure) => failure.status,
        }
    }

    /// Returns the errors and warnings. Notes appear only for a single plan.
    fn diagnostics(&self) -> impl Iterator<Item = &Diagnostic> {
        let all = match &self.plan {
            Ok(report) => &report.diagnostics,
            Err(failure) => &failure.diagnostics,
        };
        all.iter().filter(|d| d.severity != Severity::Note)
    }
}

/// Returns each error and warning once, with the numbers of its plans.
fn told(outcomes: &[Outcome]) -> Vec<Diagnostic> {
    let mut out: Vec<(&Diagnostic, Vec<u32>)> = Vec::new();
    for (number, outcome) in (1..).zip(outcomes) {
        for d in outcome.diagnostics() {
            match out.iter_mut().find(|(known, _)| *known == d) {
                Some((_, numbers)) if numbers.contains(&number) => {}
                Some((_, numbers)) => numbers.push(number),
                None => out.push((d, vec![number])),
            }
        }
    }
    let one = |(d, numbers): (&Diagnostic, Vec<u32>)| {
        let plans = if numbers.len() == 1 { "plan" } else { "plans" };
        Diagnostic {
            message: format!("{plans} {}: {d}", span(&numbers)).into(),
            ..d.clone()
        }
    };
    out.into_iter().map(one).collect()
}

fn alone(option: &str) -> Failure {
    let message = format!("{option} needs one plan, but the command makes several");
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
    let compared: Vec<ComparedPlan<'_>> = outcomes.iter().map(Outcome::compared).collect();
    output::result(&args.format.several(&compared)?)?;
    told(&outcomes).iter().for_each(output::diagnostic);
    match outcomes.iter().map(Outcome::status).max() {
        None | Some(0) => Ok(()),
        Some(status) => Err(Failure {
            diagnostics: Vec::new(),
            status,
        }),
    }
}
