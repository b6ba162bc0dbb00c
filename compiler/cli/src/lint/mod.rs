//! `tpc lint`: finds mistakes in a model, a capture or a llama.cpp command line, and in their plans.

mod args;
mod baseline;
mod clients;
mod cures;
mod files;
mod line;
mod meta;
mod print;
mod sources;
mod subject;

use std::path::{Path, PathBuf};

use tpc_ir::text;

use crate::beside;
use crate::codes;
use crate::config::{self, Config};
use crate::input::Model;
use crate::output::{self, Failure};
use crate::progress::Progress;
use crate::source::{Cures, Source, Unproved, read_capture};
pub(super) use args::Args;
use args::{Format, Target};
pub(crate) use clients::{VerdictArgs, verdicts};
pub(crate) use print::{Checked, Output};
use sources::SourceTree;
use subject::{EngineLine, Subject};
use tpc_core::placement::{DeviceList, Placement};
use tpc_diag::{Diagnostic, Severity, codes as common, message};
use tpc_ggml::engines::Backend;
use tpc_ggml::llama_cpp::{Maker, Program, Test};
use tpc_gguf::GgufFile;
use tpc_lint::format::EngineFacts;
use tpc_lint::{
    Capture, Command, File, Finding, Policy, for_llama_cpp, graph_of, lint_command, lint_file,
    lint_graph, merge,
};
use tpc_models::LoweredModel;

#[derive(Default)]
struct Findings {
    findings: Vec<Finding>,
    devices: Vec<usize>,
    backends: Vec<Option<Backend>>,
}

impl Findings {
    /// Drops findings on uneven shards that no planned device count has. For a single count, removes the device lists
    /// from findings.
    fn keep_shared(&mut self, opened: &Option<Opened<'_>>) {
        let shares_evenly = |n: usize| match opened {
            Some(opened) => !tpc_lint::is_uneven(&opened.view(), n),
            None => n == 1,
        };
        if self.devices.iter().all(|&n| shares_evenly(n)) {
            let is_shared = |f: &Finding| f.diagnostic.code == tpc_lint::UNEVEN;
            self.findings.retain(|f| !is_shared(f));
        }
        if self.devices.len() == 1 {
            for f in &mut self.findings {
                f.devices.clear();
            }
        }
    }
}

/// A model's file, and its graph if it can be built.
struct Opened<'s> {
    file: &'s GgufFile,
    model: Option<LoweredModel>,
}

impl Opened<'_> {
    fn view(&self) -> File<'_> {
        File {
            file: self.file,
            model: self.model.as_ref(),
        }
    }
}

fn open(subject: &Subject) -> Result<Option<Opened<'_>>, Failure> {
    let Some(Model { file, .. }) = subject.source.model()?.map(AsRef::as_ref) else {
        return Ok(None);
    };
    // If the graph is missing, the planner reports the reason.
    let model = graph_of(file);
    Ok(Some(Opened { file, model }))
}

/// Returns the findings in a capture that do not depend on devices.
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
        .map(|d| graph.with_excerpt(d.clone(), "the op in the IR"))
        .collect();
    out.extend(lint_graph(&graph));
    Ok(out)
}

fn lint(args: &Args, subject: &Subject, found: &mut Findings) -> Result<(), Failure> {
    // With `--target`, the other engine's rules replace tpc's.
    let opened = match args.target {
        Some(Target::GgmlMeta) => None,
        None => open(subject)?,
    };
    if args.target.is_none() {
        let _progress = Progress::start(format!("checking {}", subject.source.path()));
        let mut of_source = of_capture(subject)?;
        // An unfinished file is a warning here. Drops the note that the file is read as a capture.
        let notes = subject.source.notes().into_iter();
        let notes = notes.filter(|d| *d.code != codes::READ_AS);
        of_source.extend(notes.map(|d| match *d.code == codes::UNFINISHED {
            true => Diagnostic {
                severity: Severity::Warning,
                ..d
            },
            false => d,
        }));
        of_source.extend(opened.iter().flat_map(|o| lint_file(&o.view())));
        found.findings = merge(of_source);
    }
    let defaults = subject.source.defaults();
    for list in subject.devices.clone().map_err(Failure::usage)?.lists {
        let mut placement = subject.placement.placement_on(&list, defaults)?;
        if let (Some(line), Some(opened)) = (&subject.line, &opened) {
            placement.stretch = tpc_lint::stretch(&line.command, opened.file.header());
        }
        let is_implied = subject.line.is_some() && subject::is_open(&placement);
        if is_implied {
            placement.tensor_split = Some(subject::shares_of_memory(&placement));
        }
        if let (Some(line), Some(opened)) = (&subject.line, &opened) {
            placement = beside::counted(&line.beside, placement, opened.file);
        }
        let notes = placement.notes.clone();
        found.devices.push(placement.devices.len());
        found.backends = match &subject.line {
            Some(engine) => engine.backends(&placement),
            None => placement.backends(),
        };
        let here = match args.target {
            Some(Target::GgmlMeta) => {
                let caches = subject.placement.cache_types()?;
                let architecture = args.architecture.as_deref();
                meta::findings(subject.source.graph(), architecture, &placement, caches)?
            }
            None => {
                let machine = On {
                    list: &list,
                    placement: &placement,
                    is_implied,
                };
                let mut found = on_devices(subject, opened.as_ref(), &machine)?;
                // Drops findings about shares that the user did not give.
                found.retain(|d| !is_implied || d.code != tpc_lint::SHARES);
                // In such a program, sequences are parts of a batch, and each has the whole context.
                let chunks = |l: &EngineLine| l.command.kind == Program::Chunks;
                let chunks = subject.line.as_ref().is_some_and(chunks);
                found.retain(|d| !chunks || d.code != tpc_lint::NARROW);
                merge(notes.into_iter().chain(found).collect())
            }
        };
        Finding::join(&mut found.findings, placement.devices.len(), here);
    }
    found.keep_shared(&opened);
    Ok(())
}

struct On<'a> {
    list: &'a DeviceList,
    placement: &'a Placement,
    /// True if the user did not give the placement's shares.
    is_implied: bool,
}

/// Returns the findings in a plan. Checks cures as edits of the command line.
fn of_plan(
    subject: &Subject,
    opened: Option<&Opened<'_>>,
    on: &On<'_>,
    source: &Source,
) -> Vec<Diagnostic> {
    let path = subject.source.path();
    let report = match (&subject.line, opened) {
        (Some(engine), Some(opened)) => {
            let line = cures::Checked::new(subject, engine, on.list, opened.view(), on.placement);
            let cures = Cures {
                engine: line.engine(),
                implied_shares: on.is_implied,
                vet: &|advice, _| line.holds(advice),
            };
            source.report_with(&path, on.placement, &cures)
        }
        _ => source.report(&path, on.placement),
    };
    let mut found = report.diagnostics;
    // Command-line lints report these facts with the options of the line.
    found.retain(|d| subject.line.is_none() || !tpc_lint::is_of_command(d.code));
    fitted(subject, found)
}

/// Returns the findings in a plan, and in the way llama.cpp runs the line.
fn on_devices(
    subject: &Subject,
    opened: Option<&Opened<'_>>,
    on: &On<'_>,
) -> Result<Vec<Diagnostic>, Failure> {
    let placement = on.placement;
    let planned = subject.source.compile(placement);
    let mut out = match planned.and_then(|s| s.proved(Unproved::Error)) {
        Ok(source) => of_plan(subject, opened, on, &source),
        // An unusable option or file affects every plan.
        Err(failure) if failure.status != 1 => return Err(failure),
        Err(failure) => failure.diagnostics,
    };
    if let (Some(engine), Some(opened)) = (&subject.line, opened) {
        let backends = engine.backends(placement);
        out.extend(lint_command(&Command {
            line: &engine.command,
            build: engine.build,
            backends: &backends,
            file: opened.view(),
            placement,
            equivalent: &engine.with_tpc,
            assumed: engine.assumed,
        }));
    }
    Ok(out)
}

/// Adapts the findings in a plan to the line's program. If llama.cpp cannot load the model, this is an error; if
/// llama.cpp changes options until the model fits, a note.
fn fitted(subject: &Subject, found: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let Some(line) = subject.line.as_ref().map(|l| &l.command) else {
        return found;
    };
    let found = match line.maker {
        Maker::LlamaCpp => for_llama_cpp(found),
        Maker::IkLlamaCpp => found,
    };
    let fitted = line.fitted_settings();
    if !fitted.any() || line.maker == Maker::IkLlamaCpp {
        return found;
    }
    let changes = match (fitted.context, fitted.layers) {
        (true, true) => "first -c, then -ngl and the placement of tensors,",
        (true, false) => "-c",
        (false, _) => "-ngl and the placement of tensors",
    };
    let found = found
        .into_iter()
        .map(|d| match *d.code == *tpc_lint::CAPACITY {
            true => Diagnostic {
                severity: Severity::Note,
                message: message!(
                    "{}; llama.cpp changes {} until the model fits",
                    d.message,
                    changes
                ),
                ..d
            },
            false => d,
        });
    found.collect()
}

fn settings(args: &Args) -> Result<Config, Failure> {
    let nearest = || config::find(&std::env::current_dir().ok()?);
    match args.config.clone().or_else(nearest) {
        Some(path) => config::read(&path),
        None => Ok(Config::default()),
    }
}

/// Returns the files to lint: the given ones, or else the files of the settings. With `--graph` or a command line, a
/// single word is not a pattern.
fn subjects(args: &Args, config: &Config) -> Result<Vec<Option<PathBuf>>, Failure> {
    if args.graph.is_some() || !args.command.is_empty() {
        return match args.models.as_slice() {
            [] => Ok(vec![None]),
            [one] => Ok(vec![Some(one.clone())]),
            several => {
                let message = format!(
                    "a llama.cpp command needs one model, but {} are given",
                    several.len()
                );
                let d = Diagnostic::new(&common::COMMAND_LINE, "MODEL", message);
                Err(Failure::usage(
                    d.help("give only the model that the command runs"),
                ))
            }
        };
    }
    let files = match args.models.as_slice() {
        [] => files::expand(&to_paths(&config.lint.files), config.folder())?,
        named => files::expand(named, Path::new(""))?,
    };
    if files.is_empty() {
        let d = Diagnostic::new(
            &common::COMMAND_LINE,
            "MODEL",
            "no model, capture or command to lint",
        );
        return Err(Failure::usage(d.help(
            "give models, captures or patterns (tpc lint MODEL.gguf 'models/*.gguf'), --graph CAPTURE.jsonl, or a command \
             (tpc lint -- llama-server -m MODEL.gguf); or list files in tpc.toml",
        )));
    }
    Ok(files.into_iter().map(Some).collect())
}

fn to_paths(words: &[String]) -> Vec<PathBuf> {
    words.iter().map(PathBuf::from).collect()
}

/// Returns a file's policy from settings, overrides and command line; later entries win.
fn policy(args: &Args, config: &Config, file: &Path) -> Result<Policy, Failure> {
    let (mut deny, mut allow): (Vec<String>, Vec<String>) = Default::default();
    for section in config.sections(file) {
        deny.retain(|c| !section.allow.contains(c));
        allow.retain(|c| !section.deny.contains(c));
        deny.extend(section.deny.iter().cloned());
        allow.extend(section.allow.iter().cloned());
    }
    let named = config.path.display().to_string();
    Policy::parse(&deny, &allow, &crate::catalogue::codes()).map_err(|d| {
        let message = format!("{named}: {d}");
        Failure::usage(Diagnostic {
            message: message.into(),
            entity: named.clone().into(),
            ..d
        })
    })?;
    deny.retain(|c| !args.allow.contains(c));
    allow.retain(|c| !args.deny.contains(c));
    deny.extend(args.deny.iter().cloned());
    allow.extend(args.allow.iter().cloned());
    Policy::parse(&deny, &allow, &crate::catalogue::codes()).map_err(Failure::usage)
}

fn check(
    args: &Args,
    config: &Config,
    sources: &SourceTree,
    file: Option<&Path>,
    line: Option<&Test>,
) -> Result<Checked, Failure> {
    let named = file.or(args.graph.as_deref()).unwrap_or(Path::new(""));
    let policy = policy(args, config, named)?;
    let devices = config.sections(named).filter_map(|s| s.devices.as_deref());
    let subject = Subject::from_args(args, file, devices.last(), line)?;
    let mut found = Findings::default();
    let failed = lint(args, &subject, &mut found).err();
    let mut findings = policy.apply(found.findings);
    let status = failed.as_ref().map(|f| f.status);
    if let Some(f) = failed {
        // `--allow` does not hide the reason why a file or option is unusable.
        findings.extend(merge(f.diagnostics));
    }
    if let Some(capture) = subject.source.graph() {
        sources.locate(capture, &mut findings);
    }
    let label = subject.line.as_ref().map(|l| l.label.as_str());
    let label = label.filter(|l| !l.is_empty());
    let label = label.map_or_else(String::new, |l| format!(" {l}"));
    let engine = subject.line.as_ref().map(|l| l.build);
    let path = format!("{}{label}", subject.source.path());
    Ok(Checked {
        engine: engine.map(|build| EngineFacts::new(build, &found.backends)),
        key: path.replace('\\', "/"),
        path,
        stale: Vec::new(),
        devices: found.devices,
        findings,
        equivalent: subject.line.map(|l| l.equivalent),
        failed: status,
    })
}

pub(super) fn checked(args: &Args) -> Result<Vec<Checked>, Failure> {
    let config = settings(args)?;
    let sources = sources::read(args)?;
    let files = subjects(args, &config)?;
    let lines = subject::lines(args)?;
    match lines.as_slice() {
        [] => {
            let all = files.iter();
            all.map(|f| check(args, &config, &sources, f.as_deref(), None))
                .collect()
        }
        lines => {
            let file = files.first().and_then(Option::as_deref);
            let all = lines.iter();
            all.map(|l| check(args, &config, &sources, file, Some(l)))
                .collect()
        }
    }
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    if let Some(command) = &args.rpc_command {
        return clients::run(args, command);
    }
    conclude(args, checked(args)?)
}

/// Compares the findings with the accepted ones, prints them, and updates the list of accepted findings.
fn conclude(args: &Args, mut checked: Vec<Checked>) -> Result<(), Failure> {
    let accepted = baseline::judge(args, &mut checked)?;
    print::print(args.format, &checked, args.baseline.as_deref(), &[])?;
    finish(args, &checked)?;
    match accepted {
        Some(accepted) => accepted.save(),
        None => Ok(()),
    }
}

fn finish(args: &Args, checked: &[Checked]) -> Result<(), Failure> {
    let status = checked.iter().map(Checked::status).max().unwrap_or(0);
    // For several files as text, the diagnostics are already printed.
    let diagnostics = match (args.format, checked) {
        (Format::Text, [_, _, ..]) => Vec::new(),
        (_, all) => all.iter().flat_map(Checked::diagnostics).collect(),
    };
    if status > 0 {
        return Err(Failure {
            diagnostics,
            status,
        });
    }
    diagnostics.iter().for_each(output::diagnostic);
    Ok(())
}
