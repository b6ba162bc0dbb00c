//! `tpc plan`: the layouts of a model on devices, as tables, JSON, RON or a page.

mod formats;

use std::path::PathBuf;

use tpc_ir::Value;

use crate::args::PlacementArgs;
use crate::output::{self, Failure};
use crate::source::{Source, SourceArgs, Unproved};
use formats::{Format, write_page, write_refusal_page};
use tpc_core::advice::cures;
use tpc_core::pipeline::Compiled;
use tpc_core::placement::Placement;
use tpc_core::report::{Detail, explain, values};
use tpc_diag::{Diagnostic, Severity};
use tpc_lint::plan_report_with_cures;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    source: SourceArgs,
    /// Output format.
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
    /// Also show the tensors of each kind of layer and the search; twice: every tensor with its ranges.
    #[arg(long, short, action = clap::ArgAction::Count)]
    verbose: u8,
    /// Explain the split of a tensor: its name, a regular expression, a value (v12), or a line of a capture (line:12).
    /// Repeatable.
    #[arg(long, value_name = "TENSOR")]
    why: Vec<String>,
    /// Also write the plan as one HTML page, which loads nothing else.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Give a plan that is not proved (TPC0391), with a warning.
    #[arg(long)]
    allow_unproved: bool,
    #[command(flatten)]
    placement: PlacementArgs,
}

/// A plan, and the values whose splits are to be explained.
struct Plan {
    placement: Placement,
    source: Source,
    explained: Vec<Value>,
}

impl Plan {
    fn new(args: &Args) -> Result<Plan, Failure> {
        let placement = args.placement.placement(args.source.defaults())?;
        let unproved = match args.allow_unproved {
            true => Unproved::Warning,
            false => Unproved::Error,
        };
        let source = args.source.compile(&placement)?.proved(unproved)?;
        let mut explained = Vec::new();
        for name in &args.why {
            let Compiled { planned, model, .. } = &source.compiled;
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
}

/// Reports a failure in the formats that were asked for.
fn refuse(args: &Args, path: &str, failure: &Failure) -> Result<(), Failure> {
    if let Some(file) = &args.html {
        write_refusal_page(file, path, &failure.diagnostics)?;
    }
    match args.format.refusal(path, &failure.diagnostics)? {
        Some(text) => output::result(&text),
        None => Ok(()),
    }
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let path = args.source.path();
    let plan = match Plan::new(args) {
        Ok(plan) => plan,
        Err(failure) => {
            refuse(args, &path, &failure)?;
            return Err(failure);
        }
    };
    let Plan {
        placement,
        source,
        explained,
    } = plan;
    let compiled = &source.compiled;
    let again = |p: &Placement| {
        let source = args.source.compile(p);
        source.map(|s| s.compiled).map_err(|f| f.diagnostics)
    };
    let search = || cures(&placement, compiled, &again);
    let mut report = plan_report_with_cures(&path, &placement, compiled, &search);
    report.why = explain(compiled, &explained, &report.tensors);
    report.diagnostics.extend(source.notes);
    if let Some(file) = &args.html {
        write_page(file, &report, compiled)?;
    }
    let detail = match args.verbose {
        0 => Detail::Brief,
        1 => Detail::Full,
        _ => Detail::EveryTensor,
    };
    output::result(&args.format.plan(&report, detail)?)?;
    let errors = |d: &Diagnostic| d.severity == Severity::Error;
    if report.diagnostics.iter().any(errors) {
        return Err(Failure::findings(report.diagnostics));
    }
    report.diagnostics.iter().for_each(output::diagnostic);
    Ok(())
}
