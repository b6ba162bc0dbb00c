//! Two graphs, compared op by op on the reference executor.

mod text;

pub(super) use text::{described, label};

use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;

use super::{Args, Output};
use crate::codes;
use crate::output::{self, Failure, Format};
use crate::progress::Progress;
use crate::source::read_records;
use tpc_diag::{Diagnostic, FormatVersion, message};
use tpc_ggml::capture::Record;
use tpc_numeric::bisect::{BISECT_TOLERANCE, BisectError, Bisection, Verdict, bisect};

/// The comparison of two graphs as JSON.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "BisectReport")]
pub(crate) struct Report<'a> {
    /// The version of the format.
    tpc: FormatVersion,
    /// The verdict.
    verdict: Verdict,
    /// The file of the first graph.
    a: &'a str,
    /// The file of the second graph.
    b: &'a str,
    /// The largest error of values that agree (NMSE).
    tolerance: f64,
    #[serde(flatten)]
    found: &'a Bisection,
}

pub(super) fn run(args: &Args, second: &Path) -> Result<(), Failure> {
    let [a, b] = [&args.first, second].map(|path| path.display().to_string());
    let tolerance = args.tolerance.unwrap_or(BISECT_TOLERANCE);
    let of_a = read_records(&args.first)?;
    let of_b = read_records(second)?;
    let found = compare(&of_a, &of_b, tolerance, [&a, &b])?;
    match args.format {
        Format::Text => output::result(&text::report(&found, [&a, &b], args.verbose))?,
        Format::Json => output::json(&Output::Graphs(Report {
            tpc: FormatVersion,
            verdict: found.verdict(),
            a: &a,
            b: &b,
            tolerance,
            found: &found,
        }))?,
    }
    match differ(&found, &b) {
        None => Ok(()),
        Some(d) => Err(Failure::findings(vec![d])),
    }
}

fn compare(
    a: &[Record],
    b: &[Record],
    tolerance: f64,
    paths: [&str; 2],
) -> Result<Bisection, Failure> {
    let _progress = Progress::start("comparing the graphs");
    bisect(a, b, tolerance).map_err(|e| match e {
        BisectError::Capture(side, e) => Failure::usage(Diagnostic {
            entity: paths[side].to_owned().into(),
            ..Diagnostic::from(e)
        }),
        BisectError::Run(why) => {
            let message = message!("the ops that differ cannot run: {}", why);
            let d = Diagnostic::new(&codes::NOT_COMPARED, paths[1].to_owned(), message);
            Failure::usage(d.help(codes::NOT_COMPARED.cure))
        }
    })
}

/// Returns the diagnostic of the first difference, or of a comparison without a verdict.
fn differ(found: &Bisection, path: &str) -> Option<Diagnostic> {
    let Some(first) = &found.first else {
        let open = found.counts.results_unknown;
        let message = message!("{}: tpc could not compute {} results", path, open);
        let d = Diagnostic::new(&codes::NOT_COMPARED, path.to_owned(), message);
        return (open > 0).then(|| d.help("capture a smaller model of the architecture"));
    };
    let op = first.b.as_ref().or(first.a.as_ref())?;
    let message = message!("{}: {}", path, text::verdict(first));
    let d = Diagnostic::new(&codes::GRAPHS_DIFFER, op.tensor.clone(), message);
    Some(d.help(codes::GRAPHS_DIFFER.cure).line(op.line))
}
