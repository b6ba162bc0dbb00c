//! `tpc plan`: plans a model on devices, as tables, JSON, RON or an HTML page; compares plans.

mod calibrate;
mod earlier;
mod emit;
mod formats;
mod one;
mod several;

use std::path::{Path, PathBuf};

use clap::builder::PossibleValuesParser;

use crate::args::PlacementArgs;
use crate::beside::BesideArgs;
use crate::output::Failure;
use crate::source::SourceArgs;
use formats::Format;
pub(crate) use formats::Output;
use tpc_core::report::emit::EMITTERS;
use tpc_core::report::{Detail, PlanReport};
use tpc_diag::{Diagnostic, codes};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    source: SourceArgs,
    /// Further models to compare.
    #[arg(value_name = "MODEL")]
    more: Vec<PathBuf>,
    /// Output format.
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
    /// Also show the tensors of each kind of layer, and the search; given twice, every tensor with its ranges.
    #[arg(long, short, action = clap::ArgAction::Count)]
    verbose: u8,
    /// Explain the split of a tensor: name, regular expression, value (v12), or line of a capture (line:12);
    /// repeatable.
    #[arg(long, value_name = "TENSOR")]
    why: Vec<String>,
    /// Also write the plan as a self-contained HTML page.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Show changes since an earlier plan, the output of `--format json`. Differences are not errors.
    #[arg(long, value_name = "OLD.json", conflicts_with = "why")]
    diff: Option<PathBuf>,
    /// Write a configuration that starts llama.cpp with the plan: llama-server (a shell script), llama-swap, compose,
    /// systemd or k8s-lws (a Kubernetes LeaderWorkerSet).
    #[arg(
        long,
        value_name = "TARGET",
        value_parser = PossibleValuesParser::new(EMITTERS.iter().map(|e| e.name)),
        hide_possible_values = true,
        conflicts_with_all = ["format", "why", "diff", "verbose"]
    )]
    emit: Option<String>,
    /// Container image for --emit compose and k8s-lws [default: llama.cpp's image for the devices].
    #[arg(long, value_name = "IMAGE", requires = "emit")]
    emit_image: Option<String>,
    /// Fit the machine's speeds to measurements: output of llama-bench (md, json, jsonl, csv) or a log of llama-server.
    #[arg(long, value_name = "FILE")]
    calibrate: Option<PathBuf>,
    /// Write the calibration to a topology file, with the content of --topology if given.
    #[arg(long, value_name = "FILE.ron", requires = "calibrate")]
    write_topology: Option<PathBuf>,
    /// Accept an unproved plan (TPC0391), with a warning.
    #[arg(long)]
    allow_unproved: bool,
    #[command(flatten)]
    placement: PlacementArgs,
    #[command(flatten)]
    beside: BesideArgs,
}

/// A model or capture with one placement.
struct Job {
    source: SourceArgs,
    placement: PlacementArgs,
}

impl Args {
    /// Replaces names of models by their files or addresses.
    pub(super) fn resolve(&mut self) -> Result<(), Failure> {
        self.source.resolve()?;
        self.source.resolve_all(&mut self.more)?;
        match self.beside.draft_mut() {
            Some(draft) => self.source.resolve_beside(draft),
            None => Ok(()),
        }
    }
}

impl Job {
    /// Returns one job per combination of model, devices and context.
    fn all(args: &Args) -> Vec<Job> {
        let further = args
            .more
            .iter()
            .map(|m| SourceArgs::new(Some(m.clone()), None));
        let mut out = Vec::new();
        for source in [args.source.clone()].into_iter().chain(further) {
            for placement in args.placement.each() {
                let source = source.clone();
                out.push(Job { source, placement });
            }
        }
        out
    }
}

/// Returns a capture's plans, one per list of devices; omits plans that fail.
pub(super) fn of_capture(path: &Path, placement: &PlacementArgs) -> Vec<PlanReport> {
    let source = SourceArgs::new(None, Some(path.to_owned()));
    let args = Args {
        source,
        more: Vec::new(),
        format: Format::Table,
        verbose: 0,
        why: Vec::new(),
        html: None,
        diff: None,
        emit: None,
        emit_image: None,
        calibrate: None,
        write_topology: None,
        allow_unproved: false,
        placement: placement.clone(),
        beside: BesideArgs::default(),
    };
    let jobs = Job::all(&args);
    let plans = jobs.iter().filter_map(|job| {
        let plan = one::Plan::new(&args, job).ok()?;
        Some(plan.report(job, one::Search::Nothing))
    });
    plans.collect()
}

pub(super) fn table(plan: &PlanReport) -> Result<String, Failure> {
    Format::Table.plan(plan, Detail::Brief)
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    match Job::all(args).as_slice() {
        [one] => one::run(args, one),
        _ if args.write_topology.is_some() => Err(needs_one("--write-topology")),
        _ if args.emit.is_some() => Err(needs_one("--emit")),
        several => several::run(args, several),
    }
}

/// Refuses an option that needs a single plan.
fn needs_one(option: &str) -> Failure {
    let message = format!("{option} needs one plan, but the command makes several");
    let d = Diagnostic::new(&codes::COMMAND_LINE, option, message);
    Failure::usage(d.help("give one model, one list of devices and one context"))
}
