//! The output formats of `tpc plan`: table, JSON or RON, and an HTML page.

use std::fmt::Display;
use std::path::Path;

use clap::ValueEnum;
use serde::Serialize;

use crate::output::{self, Failure};
use tpc_core::pipeline::CompiledModel;
use tpc_core::report::{
    ComparedPlan, Detail, PlanDiff, PlanReport, page, refusal_page, render, render_comparison,
    render_diff,
};
use tpc_diag::{Diagnostic, codes};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    Table,
    Json,
    Ron,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Either<'a> {
    Plan(&'a PlanReport),
    Refusal(Refusal<'a>),
}

#[derive(Serialize)]
struct Refusal<'a> {
    tpc: u32,
    model: RefusedModel<'a>,
    verdict: &'static str,
    diagnostics: &'a [Diagnostic],
}

#[derive(Serialize)]
struct RefusedModel<'a> {
    path: &'a str,
}

impl<'a> Refusal<'a> {
    fn new(path: &'a str, diagnostics: &'a [Diagnostic]) -> Refusal<'a> {
        Refusal {
            tpc: 1,
            model: RefusedModel { path },
            verdict: "error",
            diagnostics,
        }
    }
}

impl Format {
    pub(super) fn diff(self, diff: &PlanDiff) -> Result<String, Failure> {
        match self {
            Format::Table => Ok(render_diff(diff, output::width())),
            Format::Json => json(diff),
            Format::Ron => ron(diff),
        }
    }

    pub(super) fn several(self, all: &[ComparedPlan<'_>]) -> Result<String, Failure> {
        let each = || -> Vec<Either<'_>> {
            let all = all.iter().map(|c| match c.plan {
                Ok(plan) => Either::Plan(plan),
                Err(diagnostics) => Either::Refusal(Refusal::new(c.path, diagnostics)),
            });
            all.collect()
        };
        match self {
            Format::Table => Ok(render_comparison(all, output::width())),
            Format::Json => json(&each()),
            Format::Ron => ron(&each()),
        }
    }

    pub(super) fn plan(self, report: &PlanReport, detail: Detail) -> Result<String, Failure> {
        match self {
            Format::Table => Ok(render(report, output::width(), detail)),
            Format::Json => json(report),
            Format::Ron => ron(report),
        }
    }

    /// Formats the object for a refused plan; `None` for tables, because diagnostics suffice.
    pub(super) fn refusal(
        self,
        path: &str,
        diagnostics: &[Diagnostic],
    ) -> Result<Option<String>, Failure> {
        let refusal = Refusal::new(path, diagnostics);
        match self {
            Format::Table => Ok(None),
            Format::Json => json(&refusal).map(Some),
            Format::Ron => ron(&refusal).map(Some),
        }
    }
}

pub(super) fn write_page(
    file: &Path,
    report: &PlanReport,
    compiled: &CompiledModel,
) -> Result<(), Failure> {
    let html = serialised(page(report, compiled))?;
    output::replace(file, html.as_bytes())
}

pub(super) fn write_refusal_page(
    file: &Path,
    path: &str,
    diagnostics: &[Diagnostic],
) -> Result<(), Failure> {
    let html = serialised(refusal_page(path, diagnostics))?;
    output::replace(file, html.as_bytes())
}

fn json(value: &impl Serialize) -> Result<String, Failure> {
    Ok(serialised(serde_json::to_string_pretty(value))? + "\n")
}

fn ron(value: &impl Serialize) -> Result<String, Failure> {
    let pretty = ron::ser::PrettyConfig::new();
    Ok(serialised(ron::ser::to_string_pretty(value, pretty))? + "\n")
}

fn serialised(text: Result<String, impl Display>) -> Result<String, Failure> {
    text.map_err(|e| {
        let d = Diagnostic::new(&codes::FILE_ACCESS, "report", e.to_string());
        Failure::usage(d.help("use --format table"))
    })
}
