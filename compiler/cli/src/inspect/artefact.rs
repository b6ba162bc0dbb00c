//! Reports the content of an artefact.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::Serialize;
use tpc_artefact::{Artefact, KernelRecord, Manifest, Section, sections};
use tpc_core::format::bytes;
use tpc_diag::{Diagnostic, FormatVersion, codes};
use tpc_ir::program::{ArenaKind, Program};

use super::Args;
use crate::artefact;
use crate::output::{self, Failure, Format};

/// The content of an artefact.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ArtefactContent")]
pub(crate) struct Report<'a> {
    /// Format version.
    tpc: FormatVersion,
    /// The file.
    artefact: String,
    /// The size, in bytes.
    bytes: usize,
    /// The manifest. The artefact's format sets its keys.
    manifest: &'a Manifest,
    /// The sections of the file.
    sections: Vec<SectionReport>,
    /// The largest batches, one per set of addresses.
    shapes: Vec<String>,
    /// The memory of each place.
    arenas: Vec<ArenaReport>,
    /// The number of launches by kernel.
    kernels: BTreeMap<&'a str, usize>,
    /// Kernels compiled ahead of time.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    modules: Vec<&'a KernelRecord>,
}

/// A section of an artefact.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ArtefactSection")]
struct SectionReport {
    /// The name.
    name: String,
    /// The offset, in bytes.
    offset: usize,
    /// The size, in bytes.
    bytes: usize,
}

/// Memory of one place.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Arena")]
struct ArenaReport {
    /// The place in the program, such as `@dev0`.
    place: String,
    /// The device's name, or `host`.
    device: String,
    /// The kind of the content.
    #[schemars(extend("enum" = ArenaKind::ALL.map(ArenaKind::name)))]
    kind: &'static str,
    /// The size, in bytes.
    bytes: u64,
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    if args.tensors.is_some() || args.keys.is_some() {
        let message = "an artefact does not hold tensors or metadata";
        let d = Diagnostic::new(&codes::COMMAND_LINE, "--tensors, --keys", message);
        return Err(Failure::usage(
            d.help("leave out --tensors and --keys, or give the model"),
        ));
    }
    let name = args.model.display().to_string();
    let refused = |e: tpc_artefact::ArtefactError| Failure::usage(e.diagnostic(&name));
    let file = artefact::bytes(&args.model)?;
    let read = Artefact::read(&file, tpc_engine::artefact::STORAGE_FORMATS).map_err(refused)?;
    let report = report(&name, &file, &read, sections(&file).map_err(refused)?);
    match args.format {
        Format::Text => output::result(&text(&report, args.verbose)),
        Format::Json => output::json(&report),
    }
}

fn report<'a>(name: &str, file: &[u8], read: &'a Artefact, found: Vec<Section>) -> Report<'a> {
    let program = read.program();
    let section = |s: Section| SectionReport {
        name: s.name,
        offset: s.offset,
        bytes: s.bytes,
    };
    let mut kernels: BTreeMap<&str, usize> = BTreeMap::new();
    for launch in &program.launches {
        *kernels.entry(&launch.kernel).or_default() += 1;
    }
    Report {
        tpc: FormatVersion,
        artefact: name.to_owned(),
        bytes: file.len(),
        manifest: read.manifest(),
        sections: found.into_iter().map(section).collect(),
        shapes: shapes(program),
        arenas: arenas(program),
        kernels,
        modules: read.kernels().iter().map(|m| &m.record).collect(),
    }
}

fn shapes(program: &Program) -> Vec<String> {
    let each = program.shapes.iter().map(|s| {
        let sizes = tpc_ir::Symbol::ALL.into_iter().filter_map(|symbol| {
            let n = s.most.get(symbol);
            (n != 1).then(|| format!("{} = {n}", symbol.name()))
        });
        sizes.collect::<Vec<_>>().join(", ")
    });
    each.collect()
}

fn arenas(program: &Program) -> Vec<ArenaReport> {
    let name = |place: tpc_ir::Place| match place {
        tpc_ir::Place::Device(d) => program.graph.devices.get(d.index()).map(|d| d.name.clone()),
        tpc_ir::Place::Host | tpc_ir::Place::Group(_) => None,
    };
    let each = program.arenas.iter().map(|a| ArenaReport {
        place: a.place.to_string(),
        device: name(a.place).unwrap_or_else(|| "host".to_owned()),
        kind: a.kind.name(),
        bytes: a.bytes,
    });
    each.collect()
}

fn text(report: &Report<'_>, verbose: bool) -> String {
    let m = report.manifest;
    let mut out = format!(
        "artefact of format {}, {}, written by {}\n\n",
        m.format,
        bytes(report.bytes as u64),
        m.producer
    );
    let mut line = |head: &str, what: String| {
        let _ = writeln!(out, "{head:<10}{what}");
    };
    line(
        "model",
        format!(
            "{} ({}), {}",
            m.model.name,
            m.model.architecture,
            bytes(m.model.bytes)
        ),
    );
    line("", m.model.files.join(", "));
    line("", m.model.hash.to_string());
    let stored: Vec<&str> = m.target.stored.iter().map(|s| s.name.as_str()).collect();
    line(
        "target",
        format!("{}; weights as {}", m.target.executor, stored.join(", ")),
    );
    line("devices", m.devices.join(", "));
    line("split", m.options.split_mode.clone());
    line(
        "caches",
        format!(
            "{} cells, {} and {}; {} sequences",
            m.options.caches.context,
            m.options.caches.type_k,
            m.options.caches.type_v,
            m.options.parallel
        ),
    );
    if let Some(hash) = &m.topology {
        line("topology", hash.to_string());
    }
    if verbose {
        line("options", m.options.words.join(" "));
    }
    for (i, shape) in report.shapes.iter().enumerate() {
        line(if i == 0 { "batches" } else { "" }, shape.clone());
    }
    out.push_str("\nmemory\n");
    for a in &report.arenas {
        let _ = writeln!(
            out,
            "  {:<12} {:<8} {:>10}",
            a.device,
            a.kind,
            bytes(a.bytes)
        );
    }
    out.push_str("\nlaunches\n");
    for (kernel, n) in &report.kernels {
        let _ = writeln!(out, "  {kernel:<20} {n:>6}");
    }
    out.push_str(&modules(&report.modules));
    out.push_str("\nsections\n");
    for s in &report.sections {
        let _ = writeln!(out, "  {:<24} {:>10} at {}", s.name, s.bytes, s.offset);
    }
    out
}

/// Formats the modules of kernels, if there are any.
fn modules(modules: &[&KernelRecord]) -> String {
    let mut out = String::new();
    if !modules.is_empty() {
        out.push_str("\nkernels for cards\n");
    }
    for m in modules {
        let _ = writeln!(
            out,
            "  {:<12} {:<8} {:>10} bytes by {}{}",
            m.module,
            m.target,
            m.bytes,
            m.compiler,
            m.driver
                .as_ref()
                .map(|v| format!(", driver for CUDA {v} or newer"))
                .unwrap_or_default()
        );
    }
    out
}
