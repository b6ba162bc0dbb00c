//! `tpc verify`: proves that the devices' programs compute the model; optionally runs a small model.

mod artefact;
mod bits;
mod json;
mod outputs;
mod text;

use std::path::PathBuf;

use crate::args::PlacementArgs;
use crate::artefact::{named, no_second};
use crate::output::{self, Failure, Format};
use crate::progress::Progress;
use crate::source::{Source, SourceArgs};
pub(crate) use outputs::Output;
use tpc_core::shrink::ShrunkModel;
use tpc_diag::{Diagnostic, Severity, Verdict};
use tpc_lint::plan_report;
use tpc_numeric::{self as numeric, Agreement, Feed};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    source: SourceArgs,
    /// Model of an artefact, also as `--model FILE` [default: in the artefact's folder].
    #[arg(value_name = "WEIGHTS.gguf", conflicts_with = "graph")]
    weights: Option<PathBuf>,
    /// Also run a small model with the same split, whole and as programs, and compare the results.
    #[arg(long)]
    numeric: bool,
    /// Also list the sums whose bits may differ from one device, with reasons.
    #[arg(long)]
    bits: bool,
    /// Output format.
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// Show how often the proof used each rule; with --numeric, show every size that changed.
    #[arg(long, short)]
    verbose: bool,
    #[command(flatten)]
    placement: PlacementArgs,
}

/// A small model of the plan, and the comparison with its programs.
struct NumericCheck {
    shrunk: ShrunkModel,
    /// `None` if the check failed.
    agreement: Option<Agreement>,
}

/// Runs a small model of the plan, and adds diagnostics to `found`.
fn check(source: &Source, found: &mut Vec<Diagnostic>) -> Option<NumericCheck> {
    let _progress = Progress::start("running a small model of the plan");
    let shrunk = match numeric::shrink(&source.compiled) {
        Ok(shrunk) => shrunk,
        Err(d) => {
            found.push(d);
            return None;
        }
    };
    found.extend(shrunk.notes());
    let feed = match &source.batch {
        Some(batch) => Feed::Captured(batch.clone()),
        None => Feed::Tokens(shrunk.window),
    };
    let agreement = match numeric::compare(&shrunk, &feed) {
        Ok(agreement) => Some(agreement),
        Err(d) => {
            found.push(*d);
            None
        }
    };
    Some(NumericCheck { shrunk, agreement })
}

impl Args {
    /// Replaces names of models by their files or addresses.
    pub(super) fn resolve(&mut self) -> Result<(), Failure> {
        self.source.resolve()?;
        match &mut self.weights {
            Some(weights) => self.source.resolve_all(std::slice::from_mut(weights)),
            None => Ok(()),
        }
    }
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let weights = args.weights.as_deref();
    if let Some(named) = (args.source.given()).and_then(|first| named(first, weights)) {
        return artefact::run(args, &named);
    }
    no_second(weights)?;
    let planned = args
        .placement
        .placement(args.source.defaults())
        .and_then(|placement| Ok((args.source.compile(&placement)?, placement)));
    let path = args.source.path();
    let (source, placement) = match planned {
        Ok(planned) => planned,
        Err(failure) => {
            if args.format == Format::Json {
                output::json(&json::refusal(&path, &failure.diagnostics))?;
            }
            return Err(failure);
        }
    };
    let compiled = &source.compiled;
    let mut found: Vec<Diagnostic> = Vec::new();
    found.extend(args.source.notes());
    found.extend(compiled.proof_error());
    // The proof ignores options without effect. The plan's warnings name these options.
    let findings = plan_report(&path, &placement, compiled).diagnostics;
    let warnings = findings.into_iter();
    found.extend(warnings.filter(|d| d.severity == Severity::Warning));
    let check = args.numeric.then(|| check(&source, &mut found)).flatten();
    let failed = found.iter().any(|d| d.severity == Severity::Error);
    match args.format {
        Format::Text => {
            let detail = text::Detail::from_verbose(args.verbose);
            let proof = compiled.proof.as_ref().ok();
            let proof = proof.map(|p| text::proof(compiled, p, detail));
            let check = check.as_ref().map(|c| text::check(c, detail));
            let company = compiled.request.storage.company();
            let bits = args.bits.then(|| bits::text(&compiled.programs, company));
            let parts: Vec<String> = proof.into_iter().chain(check).chain(bits).collect();
            output::result(&parts.join("\n"))?;
        }
        Format::Json => {
            let verdict = Verdict::of_errors(failed);
            let report = json::Report::new(&path, verdict, compiled, check.as_ref(), &found);
            output::json(&report)?;
        }
    }
    if failed {
        return Err(Failure::from_diagnostics(found));
    }
    found.iter().for_each(output::diagnostic);
    Ok(())
}
