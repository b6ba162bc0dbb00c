//! `tpc plan`.

use clap::ValueEnum;
use serde::Serialize;
use tpc_ir::DType;

use super::args::PlacementArgs;
use super::output::{self, Failure};
use super::source::SourceArgs;
use crate::diag::{Diagnostic, Severity};
use crate::report::{render, report};

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

fn structured(format: Format, value: &impl Serialize) -> Result<String, Failure> {
    let failed = |e: String| Failure::usage(Diagnostic::error("TPC0402", "report", e));
    let mut text = match format {
        Format::Json => serde_json::to_string_pretty(value).map_err(|e| failed(e.to_string()))?,
        Format::Table | Format::Ron => {
            ron::ser::to_string_pretty(value, ron::ser::PrettyConfig::new())
                .map_err(|e| failed(e.to_string()))?
        }
    };
    text.push('\n');
    Ok(text)
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let path = args.source.path();
    let planned = || -> Result<_, Failure> {
        let placement = args.placement.placement(DType::F16)?;
        let (compiled, notes) = args.source.compile(&placement)?;
        Ok((placement, compiled, notes))
    };
    let (placement, compiled, notes) = match planned() {
        Ok(x) => x,
        Err(failure) => {
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
    let mut report = report(&path, &placement, &compiled);
    report.diagnostics.extend(notes);
    let text = match args.format {
        Format::Table => render(&report, output::width(), args.verbose),
        format => structured(format, &report)?,
    };
    output::result(&text)?;
    if report
        .diagnostics
        .iter()
        .any(|d| d.severity == Severity::Error)
    {
        return Err(Failure::found(report.diagnostics));
    }
    report.diagnostics.iter().for_each(output::diagnostic);
    Ok(())
}
