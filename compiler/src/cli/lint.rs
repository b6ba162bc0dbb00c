//! `tpc lint`.

use std::path::PathBuf;

use clap::ValueEnum;
use tpc_ir::{DType, text};

use super::args::PlacementArgs;
use super::explain::catalogue;
use super::output::{self, Failure};
use super::source::{SourceArgs, read_capture};
use crate::arch::{self, Drafting, LowerOptions};
use crate::diag::Diagnostic;
use crate::gguf::GgufFile;
use crate::lint::format::{LintReport, Summary, github, sarif};
use crate::lint::{File, Finding, Policy, Port, merged, of_file, of_port};
use crate::placement::MAX_DEVICES;
use crate::report::report;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
    Sarif,
    Github,
}

/// Engines whose rules a captured graph may be held against.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Target {
    /// ggml's backend of several devices.
    GgmlMeta,
}

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A GGUF file, or any shard of one; a header without data suffices.
    #[arg(required_unless_present = "graph", conflicts_with = "graph")]
    model: Option<PathBuf>,
    /// A captured ggml graph (JSON lines), instead of a model.
    #[arg(long, value_name = "CAPTURE.jsonl")]
    graph: Option<PathBuf>,
    /// Hold the graph against the rules of another engine.
    #[arg(long, value_enum, value_name = "ENGINE")]
    target: Option<Target>,
    #[command(flatten)]
    placement: PlacementArgs,
    /// Output format.
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// Make errors of all warnings (`warnings`), or of the findings with these codes. May be repeated.
    #[arg(long, value_name = "warnings|CODE")]
    deny: Vec<String>,
    /// Leave out the findings with these codes. May be repeated.
    #[arg(long, value_name = "CODE")]
    allow: Vec<String>,
}

/// What was found, and for which numbers of devices.
#[derive(Default)]
struct Found {
    findings: Vec<Finding>,
    devices: Vec<usize>,
}

/// The lists of devices that `--devices` asks for: `2..8` are the counts from 2 to 8.
fn device_lists(text: &str) -> Result<Vec<String>, Failure> {
    let Some((first, last)) = text.split_once("..") else {
        return Ok(vec![text.to_owned()]);
    };
    let count = |t: &str| t.trim().trim_start_matches('=').parse::<usize>().ok();
    match (count(first), count(last)) {
        (Some(a), Some(b)) if (1..=b).contains(&a) && b <= MAX_DEVICES => {
            Ok((a..=b).map(|n| n.to_string()).collect())
        }
        _ => {
            let message = format!("`{text}` is no range of counts");
            let d = Diagnostic::error("TPC0400", "--devices", message);
            Err(Failure::usage(d.help(format!(
                "two counts from 1 to {MAX_DEVICES}, the smaller first, such as `2..8`"
            ))))
        }
    }
}

/// What the file itself has, whatever the devices.
fn of_source(args: &Args) -> Result<Vec<Diagnostic>, Failure> {
    if let Some(path) = &args.graph {
        let captured = read_capture(path)?;
        let printed = text::print(&captured.graph);
        let port = Port {
            records: &captured.records,
            captured: &captured,
            printed: &printed,
        };
        let mut out = captured.notes.clone();
        out.extend(of_port(&port));
        return Ok(out);
    }
    let path = args.model.clone().unwrap_or_default();
    let file = GgufFile::open(path).map_err(|e| Failure::of(vec![e.into()]))?;
    let options = LowerOptions {
        cache_type_k: DType::F16,
        cache_type_v: DType::F16,
        n_ctx: 4096,
        drafting: Drafting::None,
    };
    let lowered = arch::lower(file.header(), &options).ok();
    Ok(of_file(&File {
        file: &file,
        model: lowered.as_ref(),
    }))
}

fn lint(args: &Args, found: &mut Found) -> Result<(), Failure> {
    if args.target.is_some() {
        let d = Diagnostic::error("TPC0401", "--target", "its rules are not known yet");
        return Err(Failure::usage(
            d.help("leave it out: the graph is held against tpc's own rules"),
        ));
    }
    let source = SourceArgs::new(args.model.clone(), args.graph.clone());
    found.findings = merged(of_source(args)?);
    for devices in device_lists(args.placement.devices())? {
        let mode = source.split_mode();
        let placement = args.placement.placement_on(&devices, DType::F16, mode)?;
        let n = placement.devices.len();
        found.devices.push(n);
        let of_plan = match source.compile(&placement) {
            Ok(s) => report(&source.path(), &placement, &s.compiled).diagnostics,
            // What concerns an option or the file concerns every plan.
            Err(failure) if failure.status != 1 => return Err(failure),
            Err(failure) => failure.diagnostics,
        };
        Finding::join(&mut found.findings, n, merged(of_plan));
    }
    if found.devices.len() == 1 {
        for f in &mut found.findings {
            f.devices.clear();
        }
    }
    Ok(())
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let codes = catalogue();
    let known: Vec<&str> = codes.iter().map(|c| c.code).collect();
    let policy = Policy::parse(&args.deny, &args.allow, &known).map_err(Failure::usage)?;
    let source = SourceArgs::new(args.model.clone(), args.graph.clone());
    let path = source.path();
    let mut found = Found::default();
    let failed = lint(args, &mut found).err();
    let mut findings = policy.apply(found.findings);
    let status = failed.as_ref().map(|f| f.status);
    if let Some(f) = failed {
        // What makes a file unusable is no finding that could be allowed.
        findings.extend(merged(f.diagnostics));
    }
    let summary = Summary::of(&findings);
    match args.format {
        Format::Text if status.is_none() => {
            output::result(&format!("{path}: {summary}\n"))?;
        }
        Format::Text => {}
        Format::Json => {
            let report = LintReport {
                tpc: 1,
                path: &path,
                verdict: summary.verdict(),
                devices: &found.devices,
                summary,
                findings: &findings,
                equivalent: None,
            };
            output::json(&report)?;
        }
        Format::Sarif => output::json(&sarif(&path, &findings, &codes))?,
        Format::Github => output::result(&github(&path, &findings))?,
    }
    let status = status.unwrap_or(u8::from(summary.errors > 0));
    let shown = findings.iter().map(|f| Diagnostic {
        message: f.message(),
        help: match (&f.diagnostic.help, f.denied) {
            (help, false) => help.clone(),
            (Some(help), true) => Some(format!("{help}\n(an error by --deny)")),
            (None, true) => Some("(an error by --deny)".to_owned()),
        },
        ..f.diagnostic.clone()
    });
    let diagnostics: Vec<Diagnostic> = shown.collect();
    if status > 0 {
        return Err(Failure {
            diagnostics,
            status,
        });
    }
    diagnostics.iter().for_each(output::diagnostic);
    Ok(())
}
