use tpc_ir::Value;

use super::formats::{Format, write_page, write_refusal_page};
use super::{Args, Job, calibrate, earlier, emit};
use crate::output::{self, Failure};
use crate::source::{Source, Unproved};
use tpc_core::pipeline::CompiledModel;
use tpc_core::placement::Placement;
use tpc_core::report::emit::Emitter;
use tpc_core::report::{Commands, Detail, PlanReport, explain, values};
use tpc_diag::{Diagnostic, Severity};
use tpc_engine::step::step_report;
use tpc_lint::{lint_servers, plan_report};

pub(super) struct Plan {
    placement: Placement,
    source: Source,
    explained: Vec<Value>,
}

impl Plan {
    pub(super) fn new(args: &Args, job: &Job) -> Result<Plan, Failure> {
        let mut placement = job.placement.placement(job.source.defaults())?;
        if let Some(model) = job.source.model()? {
            placement = args.beside.on(placement, &model.file)?;
        }
        let calibrated = calibrate::apply(args, job, &mut placement)?;
        placement.notes.extend(calibrated);
        let unproved = match args.allow_unproved {
            true => Unproved::Warning,
            false => Unproved::Error,
        };
        let source = job.source.compile(&placement)?.proved(unproved)?;
        let mut explained = Vec::new();
        for name in &args.why {
            let CompiledModel { planned, model, .. } = &source.compiled;
            let named = values(&planned.graph, &model.graph, &source.lines, name);
            for v in named.map_err(Failure::usage)? {
                if !explained.contains(&v) {
                    explained.push(v);
                }
            }
        }
        Ok(Plan {
            placement,
            source,
            explained,
        })
    }

    /// Builds the plan's report. With [`Search::Advice`], adds better options if the plan does not fit or is slow.
    pub(super) fn report(&self, job: &Job, search: Search) -> PlanReport {
        let Plan {
            placement, source, ..
        } = self;
        let compiled = &source.compiled;
        let path = job.source.path();
        let mut report = match search {
            Search::Advice => source.report(&path, placement),
            Search::Nothing => plan_report(&path, placement, compiled),
        };
        let machine = job.placement.machine_words();
        report.diagnostics.extend(lint_servers(placement));
        let file = job.source.model_path();
        report.commands = Commands::new(&file, &machine, placement, compiled);
        if source.is_bare_header() {
            report.commands = report.commands.of_header();
        }
        if search == Search::Advice {
            report.step = step_report(compiled, placement);
        }
        report.why = explain(compiled, &self.explained, &report.tensors);
        let notes = placement.notes.iter().chain(&source.notes);
        report.diagnostics.extend(notes.cloned());
        report
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Search {
    /// Search if a plan does not fit or is slow.
    Advice,
    /// Do not search: a report on several plans has no advice.
    Nothing,
}

pub(super) fn has_errors(diagnostics: &[Diagnostic]) -> bool {
    diagnostics.iter().any(|d| d.severity == Severity::Error)
}

fn refuse(args: &Args, path: &str, failure: &Failure) -> Result<(), Failure> {
    if let Some(file) = &args.html {
        write_refusal_page(file, path, &failure.diagnostics)?;
    }
    match args.format.refusal(path, &failure.diagnostics)? {
        Some(text) => output::result(&text),
        None => Ok(()),
    }
}

pub(super) fn run(args: &Args, job: &Job) -> Result<(), Failure> {
    let path = job.source.path();
    let earlier = args.diff.as_deref().map(earlier::read).transpose();
    let plan = earlier.and_then(|e| Ok((e, Plan::new(args, job)?)));
    let (earlier, plan) = match plan {
        Ok(both) => both,
        Err(failure) => {
            refuse(args, &path, &failure)?;
            return Err(failure);
        }
    };
    let report = plan.report(job, Search::Advice);
    if let Some(file) = &args.html {
        write_page(file, &report, &plan.source.compiled)?;
    }
    let detail = match args.verbose {
        0 => Detail::Brief,
        1 => Detail::Full,
        _ => Detail::EveryTensor,
    };
    let errors = has_errors(&report.diagnostics);
    let target = args.emit.as_deref().and_then(Emitter::named);
    match (&earlier, target) {
        // A plan with errors does not run.
        (_, Some(_)) if errors => {}
        (_, Some(target)) => emit::print(args, target, (&report, &plan.placement))?,
        (Some(earlier), None) => {
            output::result(&args.format.diff(&earlier.compared_with(&report)?)?)?;
        }
        (None, None) => output::result(&args.format.plan(&report, detail)?)?,
    }
    let mut diagnostics = report.diagnostics;
    if args.format == Format::Table && earlier.is_none() {
        // The table of split modes already shows this.
        diagnostics.retain(|d| d.code != tpc_lint::CHOSEN_MODE);
    }
    if errors {
        return Err(Failure::findings(diagnostics));
    }
    diagnostics.iter().for_each(output::diagnostic);
    Ok(())
}
