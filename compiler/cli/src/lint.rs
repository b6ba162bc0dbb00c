//! `tpc lint`.

use std::path::PathBuf;

use clap::ValueEnum;
use tpc_ir::{DType, text};

use super::args::PlacementArgs;
use super::explain::catalogue;
use super::output::{self, Failure};
use super::ported;
use super::source::{SourceArgs, read_capture};
use tpc_core::placement::{MAX_DEVICES, Placement};
use tpc_diag::Diagnostic;
use tpc_ggml::llama_cpp::{CommandLine, Equivalent, devices_named};
use tpc_gguf::GgufFile;
use tpc_lint::format::{LintReport, Summary, github, sarif};
use tpc_lint::plan_report;
use tpc_lint::{File, Finding, Line, Policy, Port, graph_of, merged, of_file, of_line, of_port};
use tpc_models::Lowered;

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
    #[arg(required_unless_present_any = ["graph", "command"], conflicts_with = "graph")]
    model: Option<PathBuf>,
    /// A captured ggml graph (JSON lines), instead of a model.
    #[arg(long, value_name = "CAPTURE.jsonl", conflicts_with = "command")]
    graph: Option<PathBuf>,
    /// Hold the graph against the rules of another engine.
    #[arg(long, value_enum, value_name = "ENGINE", conflicts_with = "command")]
    target: Option<Target>,
    /// With --target: the architecture of the graph, which the engine may refuse by name.
    #[arg(long, value_name = "NAME", requires = "target")]
    architecture: Option<String>,
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
    /// A command line of llama.cpp, environment variables before it included.
    #[arg(last = true, value_name = "llama-server …")]
    command: Vec<String>,
}

/// What is linted.
struct Subject {
    source: SourceArgs,
    placement: PlacementArgs,
    /// What `--devices` says, or the line.
    devices: String,
    line: Option<Engine>,
}

/// A command line of llama.cpp.
struct Engine {
    command: CommandLine,
    /// The command that plans it.
    equivalent: String,
    /// Whether nothing says how many devices there are.
    assumed: bool,
}

impl Subject {
    fn of(args: &Args) -> Result<Subject, Failure> {
        if args.command.is_empty() {
            return Ok(Subject {
                source: SourceArgs::new(args.model.clone(), args.graph.clone()),
                placement: args.placement.clone(),
                devices: args.placement.devices().to_owned(),
                line: None,
            });
        }
        if PlacementArgs::read(&[])?.on_machine_of(&args.placement) != args.placement {
            let message = "placement options stand in the command line behind `--`";
            let d = Diagnostic::error("TPC0400", "command line", message);
            return Err(Failure::usage(
                d.help("only --devices and --topology may stand before it"),
            ));
        }
        let command = CommandLine::parse(&args.command).map_err(Failure::usage)?;
        let named = args.model.as_ref().map(|m| m.display().to_string());
        let Some(same) = Equivalent::of(&command, named) else {
            let d = Diagnostic::error("TPC0400", "-m", "the line names no model file");
            return Err(Failure::usage(d.help(
                "-m MODEL.gguf; of a model that is fetched, the file: tpc lint MODEL.gguf -- llama-server -hf …",
            )));
        };
        let placement = PlacementArgs::read(&same.options)?.on_machine_of(&args.placement);
        let counted = devices_named(&command);
        let assumed = !args.placement.says_devices() && counted.is_none();
        let devices = if args.placement.says_devices() {
            args.placement.devices().to_owned()
        } else {
            counted.unwrap_or(2).to_string()
        };
        Ok(Subject {
            source: SourceArgs::new(Some(PathBuf::from(&same.model)), None),
            placement,
            line: Some(Engine {
                equivalent: same.command(&devices),
                command,
                assumed,
            }),
            devices,
        })
    }
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

/// A model's file, and its graph if it has one.
struct Opened {
    file: GgufFile,
    model: Option<Lowered>,
}

impl Opened {
    fn view(&self) -> File<'_> {
        File {
            file: &self.file,
            model: self.model.as_ref(),
        }
    }
}

/// Opens the model of a subject, if it is one.
fn open(subject: &Subject) -> Result<Option<Opened>, Failure> {
    let Some(path) = subject.source.model() else {
        return Ok(None);
    };
    let file = GgufFile::open(path).map_err(|e| Failure::of(vec![e.into()]))?;
    // Why there is none, the plan says.
    let model = graph_of(&file);
    Ok(Some(Opened { file, model }))
}

/// What a capture has, whatever the devices.
fn of_capture(subject: &Subject) -> Result<Vec<Diagnostic>, Failure> {
    let Some(path) = subject.source.graph() else {
        return Ok(Vec::new());
    };
    let captured = read_capture(path)?;
    let printed = text::print(&captured.graph);
    let port = Port {
        records: &captured.records,
        captured: &captured,
        printed: &printed,
    };
    let notes = captured.notes.iter();
    let mut out: Vec<Diagnostic> = notes
        .map(|d| port.shown(d.clone(), "what it became"))
        .collect();
    out.extend(of_port(&port));
    Ok(out)
}

fn lint(args: &Args, subject: &Subject, found: &mut Found) -> Result<(), Failure> {
    // Another engine's rules take the place of tpc's.
    let opened = match args.target {
        Some(Target::GgmlMeta) => None,
        None => open(subject)?,
    };
    if args.target.is_none() {
        let mut of_source = of_capture(subject)?;
        of_source.extend(opened.iter().flat_map(|o| of_file(&o.view())));
        found.findings = merged(of_source);
    }
    for devices in device_lists(&subject.devices)? {
        let mode = subject.source.split_mode();
        let placement = subject.placement.placement_on(&devices, DType::F16, mode)?;
        found.devices.push(placement.devices.len());
        let here = match args.target {
            Some(Target::GgmlMeta) => {
                let architecture = args.architecture.as_deref();
                ported::findings(subject.source.graph(), architecture, &placement)?
            }
            None => merged(on_devices(subject, opened.as_ref(), &placement)?),
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

/// What a placement has, and what the other engine would do with it.
fn on_devices(
    subject: &Subject,
    opened: Option<&Opened>,
    placement: &Placement,
) -> Result<Vec<Diagnostic>, Failure> {
    let planned = subject.source.compile(placement);
    let mut out = match planned.and_then(|s| s.proved(false)) {
        Ok(s) => plan_report(&subject.source.path(), placement, &s.compiled).diagnostics,
        // What concerns an option or the file concerns every plan.
        Err(failure) if failure.status != 1 => return Err(failure),
        Err(failure) => failure.diagnostics,
    };
    if let (Some(engine), Some(opened)) = (&subject.line, opened) {
        out.extend(of_line(&Line {
            command: &engine.command,
            file: opened.view(),
            placement,
            equivalent: &engine.equivalent,
            assumed: engine.assumed,
        }));
    }
    Ok(out)
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let codes = catalogue();
    let known: Vec<&str> = codes.iter().map(|c| c.code).collect();
    let policy = Policy::parse(&args.deny, &args.allow, &known).map_err(Failure::usage)?;
    let subject = Subject::of(args)?;
    let path = subject.source.path();
    let mut found = Found::default();
    let failed = lint(args, &subject, &mut found).err();
    let mut findings = policy.apply(found.findings);
    let status = failed.as_ref().map(|f| f.status);
    if let Some(f) = failed {
        // What makes a file unusable is no finding that could be allowed.
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
