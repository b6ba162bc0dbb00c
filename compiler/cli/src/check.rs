//! `tpc check`: reports before loading if an artefact can run here.

use std::fmt::Write;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Serialize;
use tpc_diag::{Diagnostic, FormatVersion, codes as common};

use crate::args::PlacementArgs;
use crate::artefact;
use crate::execution;
use crate::output::{self, Failure, Format};
use tpc_engine::artefact::{self as fit, Mismatch};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// An artefact (.tpc).
    model: PathBuf,
    /// Model of an artefact, also as `--model FILE` [default: in the artefact's folder].
    #[arg(value_name = "WEIGHTS.gguf")]
    weights: Option<PathBuf>,
    /// Devices: a count, cards such as `2x3090`, or a list such as `cuda:0,cuda:1` [default: the artefact's].
    #[arg(long, value_name = "SPEC")]
    devices: Option<String>,
    /// Topology file: devices and links of a machine; --devices may name its devices.
    #[arg(long, value_name = "FILE.ron")]
    topology: Option<PathBuf>,
    /// Output format.
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

/// The output of `tpc check` as JSON.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ArtefactCheck")]
pub(crate) struct Report<'a> {
    /// Format version.
    tpc: FormatVersion,
    /// The file.
    artefact: &'a str,
    /// `valid`, `rebuild` or `no model`. For an unreadable artefact, the command reports a diagnostic.
    #[schemars(extend("enum" = ["valid", "rebuild", "no model"]))]
    verdict: &'static str,
    /// The differences that need a rebuild.
    mismatches: Vec<Row<'a>>,
    /// The conditions under which results keep their bits.
    bits: &'a str,
    /// The command that rebuilds the artefact, if needed.
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<&'a str>,
}

/// A difference that needs a rebuild.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Mismatch")]
struct Row<'a> {
    /// The diagnostic code.
    code: &'static str,
    /// The field of the artefact, or the property of the machine.
    field: &'a str,
    /// The value in the artefact.
    found: &'a str,
    /// The value here.
    wanted: &'a str,
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let Some(named) = artefact::named(&args.model, args.weights.as_deref()) else {
        let name = args.model.display().to_string();
        let message = format!("{name} is not an artefact");
        let d = Diagnostic::new(&common::COMMAND_LINE, name, message);
        return Err(Failure::usage(d.help(
            "give a file that `tpc compile` wrote; `tpc lint` checks models",
        )));
    };
    let read = artefact::read(named.artefact)?;
    let options = options(args)?;
    let mut found = fit::mismatches(&read);
    let devices = execution::devices(&options)?;
    let other = fit::on_devices(&read, devices.as_ref());
    let asked = devices.as_ref().filter(|_| other.is_some());
    found.extend(other);
    found.extend(fit::in_memory(&read, devices.as_ref()));
    let file = options.topology_bytes()?;
    found.extend(file.and_then(|file| fit::of_topology(&read, &file)));
    let model = named.model(&read)?;
    found.extend(model.as_ref().and_then(|file| fit::of_model(&read, file)));
    let name = named.artefact.display().to_string();
    let path = named.model_path(&read);
    let of = (named.artefact, read.manifest());
    let command = fit::command(of, Some(&path), asked, options.topology_path());
    // Format 1 has no promise, so the program is analysed again.
    let bits = read.manifest().bits.clone();
    let bits = bits.unwrap_or_else(|| fit::bits_of(&read).brief());
    let verdict = match (found.is_empty(), &model) {
        (false, _) => "rebuild",
        (true, None) => "no model",
        (true, Some(_)) => "valid",
    };
    match args.format {
        Format::Text => output::result(&text(&name, &found, &command, (verdict, &bits)))?,
        Format::Json => output::json(&Report {
            tpc: FormatVersion,
            artefact: &name,
            verdict,
            mismatches: found.iter().map(row).collect(),
            bits: &bits,
            command: Some(command.as_str()).filter(|_| !found.is_empty()),
        })?,
    }
    if model.is_none() {
        output::diagnostic(&artefact::without_model(&named, &read));
    }
    if let Some(note) = fit::without_cards(named.artefact, &read) {
        output::diagnostic(&note);
    }
    match found.is_empty() {
        true if model.is_none() => Err(Failure::findings(Vec::new())),
        true => Ok(()),
        false => Err(Failure::findings(
            found
                .iter()
                .map(|m| m.diagnostic(name.clone(), command.clone()))
                .collect(),
        )),
    }
}

fn options(args: &Args) -> Result<PlacementArgs, Failure> {
    let devices = args.devices.iter();
    let mut words: Vec<String> = devices
        .flat_map(|d| ["--devices".to_owned(), d.clone()])
        .collect();
    if let Some(path) = &args.topology {
        words.extend(["--topology".to_owned(), path.display().to_string()]);
    }
    PlacementArgs::read(&words)
}

fn row(m: &Mismatch) -> Row<'_> {
    Row {
        code: m.code.id,
        field: m.field,
        found: &m.found,
        wanted: &m.wanted,
    }
}

fn text(name: &str, found: &[Mismatch], command: &str, (verdict, bits): (&str, &str)) -> String {
    if found.is_empty() {
        return format!("{name}: {verdict}\n  bits    {bits}\n");
    }
    let mut out = format!("{name}: rebuild needed\n");
    for m in found {
        let _ = writeln!(out, "  {}: found {}, wanted {}", m.field, m.found, m.wanted);
    }
    let _ = writeln!(out, "  {command}");
    out
}
