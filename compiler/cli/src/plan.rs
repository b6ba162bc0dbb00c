//! `tpc plan`.

use std::fmt::Display;
use std::path::PathBuf;

use clap::ValueEnum;
use serde::Serialize;

use super::args::PlacementArgs;
use super::output::{self, Failure};
use super::source::SourceArgs;
use tpc_core::advice::{cures, fits};
use tpc_core::pipeline::Compiled;
use tpc_core::placement::Placement;
use tpc_core::report::{Detail, explain, page, refusal_page, render, values};
use tpc_diag::{Diagnostic, Severity, codes};
use tpc_lint::plan_report;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Table,
    Json,
    Ron,
}

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    source: SourceArgs,
    #[command(flatten)]
    placement: PlacementArgs,
    /// Output format.
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
    /// Every tensor with its ranges.
    #[arg(long, short)]
    verbose: bool,
    /// Say why a tensor is split as it is: its name, a regular expression, a value (v12), or a line of a capture
    /// (line:12). May be repeated.
    #[arg(long, value_name = "TENSOR")]
    why: Vec<String>,
    /// Also write the plan as one HTML page, which loads nothing else.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Give a plan that is not proved (TPC0391), with a warning.
    #[arg(long)]
    allow_unproved: bool,
}

/// What JSON and RON readers get when there is no plan.
#[derive(Serialize)]
struct Refused<'a> {
    tpc: u32,
    model: RefusedModel<'a>,
    verdict: &'static str,
    diagnostics: &'a [Diagnostic],
}

#[derive(Serialize)]
struct RefusedModel<'a> {
    path: &'a str,
}

fn serialised(text: Result<String, impl Display>) -> Result<String, Failure> {
    text.map_err(|e| {
        Failure::usage(Diagnostic::new(
            &codes::FILE_ACCESS,
            "report",
            e.to_string(),
        ))
    })
}

fn structured(format: Format, value: &impl Serialize) -> Result<String, Failure> {
    let mut text = match format {
        Format::Json => serialised(serde_json::to_string_pretty(value))?,
        Format::Table | Format::Ron => {
            let pretty = ron::ser::PrettyConfig::new();
            serialised(ron::ser::to_string_pretty(value, pretty))?
        }
    };
    text.push('\n');
    Ok(text)
}

/// What would make a plan fit, each cure planned.
fn remedies(args: &Args, placement: &Placement, compiled: &Compiled) -> String {
    let again = |p: &Placement| {
        let source = args.source.compile(p);
        source.map(|s| s.compiled).map_err(|f| f.diagnostics)
    };
    let cures = cures(placement, compiled, &again);
    if cures.is_empty() {
        return "more devices: no smaller context or cache, and nothing on the host, makes it fit"
            .to_owned();
    }
    format!("each of these fits: {}", cures.join("; "))
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let path = args.source.path();
    let planned = || -> Result<_, Failure> {
        let placement = args.placement.placement(args.source.defaults())?;
        let source = args.source.compile(&placement)?;
        let source = source.proved(args.allow_unproved)?;
        let mut asked = Vec::new();
        for name in &args.why {
            let Compiled { planned, model, .. } = &source.compiled;
            let found = values(&planned.graph, &model.graph, &source.lines, name);
            for v in found.map_err(Failure::usage)? {
                if !asked.contains(&v) {
                    asked.push(v);
                }
            }
        }
        Ok((placement, source, asked))
    };
    let (placement, source, asked) = match planned() {
        Ok(x) => x,
        Err(failure) => {
            if let Some(file) = &args.html {
                let html = refusal_page(&path, &failure.diagnostics);
                output::replace(file, serialised(html)?.as_bytes())?;
            }
            if args.format != Format::Table {
                let refused = Refused {
                    tpc: 1,
                    model: RefusedModel { path: &path },
                    verdict: "error",
                    diagnostics: &failure.diagnostics,
                };
                output::result(&structured(args.format, &refused)?)?;
            }
            return Err(failure);
        }
    };
    let compiled = &source.compiled;
    let mut report = plan_report(&path, &placement, compiled);
    report.why = explain(compiled, &asked, &report.tensors);
    report.diagnostics.extend(source.notes);
    if !fits(compiled) {
        let help = remedies(args, &placement, compiled);
        let short = |d: &&mut Diagnostic| d.code == tpc_lint::over_capacity();
        for d in report.diagnostics.iter_mut().filter(short) {
            d.help = Some(help.clone());
        }
    }
    if let Some(file) = &args.html {
        let html = serialised(page(&report, &placement, compiled))?;
        output::replace(file, html.as_bytes())?;
    }
    let text = match args.format {
        Format::Table => {
            let detail = if args.verbose {
                Detail::Full
            } else {
                Detail::Brief
            };
            render(&report, output::width(), detail)
        }
        format => structured(format, &report)?,
    };
    output::result(&text)?;
    if report
        .diagnostics
        .iter()
        .any(|d| d.severity == Severity::Error)
    {
        return Err(Failure::findings(report.diagnostics));
    }
    report.diagnostics.iter().for_each(output::diagnostic);
    Ok(())
}
