//! `tpc lint`: findings in a model, a capture, a command line of llama.cpp, and the plans that follow.

mod meta;
mod subject;

use std::path::PathBuf;

use clap::ValueEnum;
use tpc_ir::text;

use crate::args::PlacementArgs;
use crate::codes;
use crate::input::Model;
use crate::output::{self, Failure};
use crate::progress::Progress;
use crate::source::{Unproved, read_capture};
use subject::Subject;
use tpc_core::placement::Placement;
use tpc_diag::{Diagnostic, Severity};
use tpc_gguf::GgufFile;
use tpc_lint::format::{LintReport, Summary, github, sarif};
use tpc_lint::{
    Capture, Command, File, Finding, Policy, graph_of, lint_command, lint_file, lint_graph, merged,
};
use tpc_models::Lowered;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
    Sarif,
    Github,
}

/// An engine by whose rules a captured graph is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Target {
    /// ggml's backend of several devices.
    GgmlMeta,
}

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A GGUF file, or any shard of one; the header suffices.
    #[arg(required_unless_present_any = ["graph", "command"], conflicts_with = "graph")]
    model: Option<PathBuf>,
    /// A captured ggml graph (JSON lines), instead of a model.
    #[arg(long, value_name = "CAPTURE.jsonl", conflicts_with = "command")]
    graph: Option<PathBuf>,
    /// Check the graph by the rules of another engine.
    #[arg(long, value_enum, value_name = "ENGINE", conflicts_with = "command")]
    target: Option<Target>,
    /// The graph's architecture, which the engine of --target may refuse by name.
    #[arg(long, value_name = "NAME", requires = "target")]
    architecture: Option<String>,
    /// Output format.
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// Make errors of all warnings (`warnings`), or of findings with these codes; repeatable.
    #[arg(long, value_name = "warnings|CODE")]
    deny: Vec<String>,
    /// Leave out the findings with these codes; repeatable.
    #[arg(long, value_name = "CODE")]
    allow: Vec<String>,
    /// A command line of llama.cpp, with any environment variables before it.
    #[arg(last = true, value_name = "llama-server …")]
    command: Vec<String>,
    #[command(flatten)]
    placement: PlacementArgs,
}

/// The findings of all plans, and their numbers of devices.
#[derive(Default)]
struct Findings {
    findings: Vec<Finding>,
    devices: Vec<usize>,
}

/// A model's file, and its graph if it has one.
struct Opened<'s> {
    file: &'s GgufFile,
    model: Option<Lowered>,
}

impl Opened<'_> {
    fn view(&self) -> File<'_> {
        File {
            file: self.file,
            model: self.model.as_ref(),
        }
    }
}

/// Opens the model of a subject, if it is one.
fn open(subject: &Subject) -> Result<Option<Opened<'_>>, Failure> {
    let Some(Model { file, .. }) = subject.source.model()?.map(AsRef::as_ref) else {
        return Ok(None);
    };
    // Planning tells why there is no graph.
    let model = graph_of(file);
    Ok(Some(Opened { file, model }))
}

/// The findings in a capture that do not depend on the devices.
fn of_capture(subject: &Subject) -> Result<Vec<Diagnostic>, Failure> {
    let Some(path) = subject.source.graph() else {
        return Ok(Vec::new());
    };
    let captured = read_capture(path)?;
    let printed = text::print(&captured.graph);
    let graph = Capture {
        records: &captured.records,
        captured: &captured,
        printed: &printed,
    };
    let notes = captured.notes.iter();
    let mut out: Vec<Diagnostic> = notes
        .map(|d| graph.shown(d.clone(), "what it became"))
        .collect();
    out.extend(lint_graph(&graph));
    Ok(out)
}

fn lint(args: &Args, subject: &Subject, found: &mut Findings) -> Result<(), Failure> {
    // Another engine's rules take the place of tpc's.
    let opened = match args.target {
        Some(Target::GgmlMeta) => None,
        None => open(subject)?,
    };
    if args.target.is_none() {
        let _progress = Progress::start(format!("checking {}", subject.source.path()));
        let mut of_source = of_capture(subject)?;
        // Who lints a file wants it whole.
        of_source.extend(subject.source.notes().into_iter().map(|d| {
            match *d.code == codes::UNFINISHED {
                true => Diagnostic {
                    severity: Severity::Warning,
                    ..d
                },
                false => d,
            }
        }));
        of_source.extend(opened.iter().flat_map(|o| lint_file(&o.view())));
        found.findings = merged(of_source);
    }
    let defaults = subject.source.defaults();
    for list in subject.devices.clone().map_err(Failure::usage)?.lists {
        let placement = subject.placement.placement_on(&list, defaults)?;
        let notes = placement.notes.clone();
        found.devices.push(placement.devices.len());
        let here = match args.target {
            Some(Target::GgmlMeta) => {
                let caches = subject.placement.cache_types()?;
                let architecture = args.architecture.as_deref();
                meta::findings(subject.source.graph(), architecture, &placement, caches)?
            }
            None => {
                let found = on_devices(subject, opened.as_ref(), &placement)?;
                merged(notes.into_iter().chain(found).collect())
            }
        };
        Finding::join(&mut found.findings, placement.devices.len(), here);
    }
    if found.devices.len() == 1 {
        for f in &mut found.findings {
            f.devices.clear();
        }
    }
    Ok(())
}

/// The findings in a plan, and in what llama.cpp would do in its place.
fn on_devices(
    subject: &Subject,
    opened: Option<&Opened<'_>>,
    placement: &Placement,
) -> Result<Vec<Diagnostic>, Failure> {
    let planned = subject.source.compile(placement);
    let mut out = match planned.and_then(|s| s.proved(Unproved::Error)) {
        Ok(s) => s.report(&subject.source.path(), placement).diagnostics,
        // An unusable option or file spoils every plan.
        Err(failure) if failure.status != 1 => return Err(failure),
        Err(failure) => failure.diagnostics,
    };
    if let (Some(engine), Some(opened)) = (&subject.line, opened) {
        out.extend(lint_command(&Command {
            line: &engine.command,
            file: opened.view(),
            placement,
            equivalent: &engine.equivalent,
            assumed: engine.assumed,
        }));
    }
    Ok(out)
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let policy = Policy::parse(&args.deny, &args.allow, &crate::catalogue::codes())
        .map_err(Failure::usage)?;
    let subject = Subject::from_args(args)?;
    let path = subject.source.path();
    let mut found = Findings::default();
    let failed = lint(args, &subject, &mut found).err();
    let mut findings = policy.apply(found.findings);
    let status = failed.as_ref().map(|f| f.status);
    if let Some(f) = failed {
        // Reasons why a file or an option is unusable cannot be allowed.
        findings.extend(merged(f.diagnostics));
    }
    let summary = Summary::of(&findings);
    let equivalent = subject.line.as_ref().map(|l| l.equivalent.as_str());
    match args.format {
        Format::Text if status.is_none() => {
            let same = equivalent.map_or_else(String::new, |e| format!("the same with tpc: {e}\n"));
            output::result(&format!("{path}: {summary}\n{same}"))?;
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
                equivalent,
            };
            output::json(&report)?;
        }
        Format::Sarif => output::json(&sarif(&path, &findings))?,
        Format::Github => output::result(&github(&path, &findings))?,
    }
    let status = status.unwrap_or(u8::from(summary.errors > 0));
    let shown = findings.iter().map(|f| Diagnostic {
        message: f.message().into(),
        help: match (&f.diagnostic.help, f.denied) {
            (help, false) => help.clone(),
            (Some(help), true) => Some(format!("{help}\n(an error by --deny)").into()),
            (None, true) => Some("(an error by --deny)".into()),
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
