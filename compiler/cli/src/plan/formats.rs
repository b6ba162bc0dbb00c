//! The output formats of `tpc plan`: table, JSON or RON, and an HTML page.

use std::fmt::Display;
use std::path::Path;

use clap::ValueEnum;
use schemars::JsonSchema;
use serde::Serialize;

use crate::output::{self, Failure};
use tpc_core::pipeline::CompiledModel;
use tpc_core::report::{
    ComparedPlan, Detail, PlanDiff, PlanReport, page, refusal_page, render, render_comparison,
    render_diff,
};
use tpc_diag::{Diagnostic, FormatVersion, Verdict, codes};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    Table,
    Json,
    Ron,
}

/// The output of `tpc plan` as JSON or RON.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum Output<'a> {
    /// A plan.
    Plan(&'a PlanReport),
    /// A model or option that cannot be planned.
    Refusal(Refusal<'a>),
    /// Several models: a plan or a refusal for each.
    Several(Vec<Either<'a>>),
    /// The changes since the plan of `--diff`.
    Diff(&'a PlanDiff),
}

/// A plan or a refusal.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "PlanOrRefusal")]
pub(crate) enum Either<'a> {
    /// A plan.
    Plan(&'a PlanReport),
    /// A model or option that cannot be planned.
    Refusal(Refusal<'a>),
}

/// The report on a model or option that cannot be planned. In contrast to a plan, it lacks `split_mode`.
#[derive(Serialize, JsonSchema)]
#[schemars(extend("not" = {"required": ["split_mode"]}))]
pub(crate) struct Refusal<'a> {
    /// Format version.
    tpc: FormatVersion,
    /// The model.
    model: RefusedModel<'a>,
    /// Always `error`.
    verdict: Verdict,
    /// The reasons.
    diagnostics: &'a [Diagnostic],
}

/// A model that cannot be planned.
#[derive(Serialize, JsonSchema)]
struct RefusedModel<'a> {
    /// The file.
    path: &'a str,
}

impl<'a> Refusal<'a> {
    fn new(path: &'a str, diagnostics: &'a [Diagnostic]) -> Refusal<'a> {
        Refusal {
            tpc: FormatVersion,
            model: RefusedModel { path },
            verdict: Verdict::Error,
            diagnostics,
        }
    }
}

impl Format {
    pub(super) fn diff(self, diff: &PlanDiff) -> Result<String, Failure> {
        match self {
            Format::Table => Ok(render_diff(diff, output::width())),
            Format::Json | Format::Ron => self.object(&Output::Diff(diff)),
        }
    }

    pub(super) fn several(self, all: &[ComparedPlan<'_>]) -> Result<String, Failure> {
        if self == Format::Table {
            return Ok(render_comparison(all, output::width()));
        }
        let each = all.iter().map(|c| match c.plan {
            Ok(plan) => Either::Plan(plan),
            Err(diagnostics) => Either::Refusal(Refusal::new(c.path, diagnostics)),
        });
        self.object(&Output::Several(each.collect()))
    }

    pub(super) fn plan(self, report: &PlanReport, detail: Detail) -> Result<String, Failure> {
        match self {
            Format::Table => Ok(render(report, output::width(), detail)),
            Format::Json | Format::Ron => self.object(&Output::Plan(report)),
        }
    }

    /// Formats the object for a refused plan; `None` for tables, because diagnostics suffice.
    pub(super) fn refusal(
        self,
        path: &str,
        diagnostics: &[Diagnostic],
    ) -> Result<Option<String>, Failure> {
        let refusal = || Output::Refusal(Refusal::new(path, diagnostics));
        match self {
            Format::Table => Ok(None),
            Format::Json | Format::Ron => self.object(&refusal()).map(Some),
        }
    }

    /// Formats an object as RON, or else as JSON.
    fn object(self, value: &Output<'_>) -> Result<String, Failure> {
        match self {
            Format::Ron => {
                let pretty = ron::ser::PrettyConfig::new();
                Ok(serialised(ron::ser::to_string_pretty(value, pretty))? + "\n")
            }
            Format::Table | Format::Json => {
                Ok(serialised(serde_json::to_string_pretty(value))? + "\n")
            }
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

fn serialised(text: Result<String, impl Display>) -> Result<String, Failure> {
    text.map_err(|e| {
        let d = Diagnostic::new(&codes::FILE_ACCESS, "report", e.to_string());
        Failure::usage(d.help("use --format table"))
    })
}
