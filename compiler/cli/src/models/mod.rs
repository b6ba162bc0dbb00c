//! `tpc models`: lists the models that other programs keep on this machine.

mod file_type;
mod fit;

use std::fmt::Write as _;

use clap::ValueEnum;
use schemars::JsonSchema;
use serde::Serialize;
use tpc_core::format::wrapped;
use tpc_core::report::{ModelRow, render_models};
use tpc_diag::FormatVersion;
use tpc_gguf::{GgufFile, TensorInfo};
use tpc_store::{Entry, State, list};

use crate::args::PlacementArgs;
use crate::input;
use crate::output::{self, Failure};
use crate::progress::Progress;
use fit::{Fit, Machine};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Table,
    Json,
}

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// List only models with this text in their name.
    #[arg(value_name = "TEXT")]
    text: Option<String>,
    /// Output format.
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
    #[command(flatten)]
    placement: PlacementArgs,
}

/// The output of `tpc models --format json`.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Report {
    /// The version of the format.
    tpc: FormatVersion,
    /// The devices of `fits`.
    devices: String,
    /// The models, by name.
    models: Vec<Model>,
    /// The folders that may have models.
    folders: Vec<Folder>,
}

/// A model of another program.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "StoredModel")]
struct Model {
    /// The name that commands take.
    name: String,
    /// The program that keeps the model.
    source: &'static str,
    /// The file, or its first shard.
    path: String,
    /// Bytes of all files.
    bytes: u64,
    /// `ready`, `unfinished` or `broken`.
    state: &'static str,
    /// The reason of another state than `ready`.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// The architecture.
    #[serde(skip_serializing_if = "Option::is_none")]
    arch: Option<String>,
    /// The type of most weights.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    quant: Option<String>,
    /// Number of parameters.
    #[serde(skip_serializing_if = "Option::is_none")]
    n_params: Option<u64>,
    /// The plan's answer.
    #[serde(flatten)]
    fit: Option<Fit>,
}

/// A folder that may have models.
#[derive(Serialize, JsonSchema)]
struct Folder {
    /// The program that keeps models there.
    source: &'static str,
    /// The folder.
    path: String,
    /// True if the folder exists.
    exists: bool,
}

impl Model {
    /// Reads the header of an entry's file, and plans the model.
    fn new(entry: Entry, machine: &Machine) -> Model {
        let path = entry.path.display().to_string();
        let (state, reason) = match &entry.state {
            State::Ready => ("ready", None),
            State::Unfinished(why) => ("unfinished", Some(why.clone())),
            State::Broken(why) => ("broken", Some(why.clone())),
        };
        let mut out = Model {
            name: entry.name,
            source: entry.source.name(),
            path,
            bytes: entry.bytes,
            state,
            reason,
            arch: None,
            quant: None,
            n_params: None,
            fit: None,
        };
        if entry.state == State::Ready {
            match GgufFile::open_unfinished(&entry.path) {
                Ok(file) => out.read(&file, machine),
                Err(e) => out.fails("broken", e.to_string()),
            }
        }
        out
    }

    fn fails(&mut self, state: &'static str, reason: String) {
        self.state = state;
        self.reason = Some(reason);
    }

    fn read(&mut self, file: &GgufFile, machine: &Machine) {
        let header = file.header();
        let arch = header.metadata().get_str("general.architecture");
        self.arch = arch.ok().flatten().map(str::to_owned);
        self.quant = file_type::of(file);
        let params = header.tensors().iter().map(TensorInfo::elements);
        self.n_params = Some(params.fold(0, u64::saturating_add));
        match (file.missing().first(), file.has_data()) {
            (Some(missing), _) => {
                let reason = format!("{} of {} bytes are missing", missing.bytes, missing.whole);
                self.fails("unfinished", reason);
            }
            (None, false) => self.fails("unfinished", "the file has only the header".to_owned()),
            (None, true) => {}
        }
        self.fit = Some(machine.fit(&self.path, file));
    }

    fn row(&self) -> ModelRow {
        let fits = match (self.state, &self.fit) {
            ("ready", Some(fit)) => match (fit.fits, fit.ctx_size, fit.code) {
                (Some(true), Some(cells), _) => format!("with -c {cells}"),
                (Some(true), None, _) => "yes".to_owned(),
                (Some(false), ..) => "no".to_owned(),
                (None, _, code) => code.unwrap_or("unknown").to_owned(),
            },
            (state, _) => state.to_owned(),
        };
        ModelRow {
            name: self.name.clone(),
            quant: self.quant.clone(),
            arch: self.arch.clone(),
            params: self.n_params,
            bytes: self.bytes,
            source: self.source.to_owned(),
            fits,
        }
    }
}

/// Formats the table with its remarks.
fn table(report: &Report, width: u16) -> String {
    let mut out = String::new();
    if report.models.is_empty() {
        out.push_str("no models found in these folders:\n");
        for folder in &report.folders {
            let _ = writeln!(out, "  {:<10} {}", folder.source, folder.path);
        }
        let text = "download one: tpc run -hf USER/NAME:Q4_K_M -p Hello\n";
        out.push_str(text);
        return out;
    }
    let rows: Vec<ModelRow> = report.models.iter().map(Model::row).collect();
    out.push_str(&render_models(&rows, width));
    let text = format!(
        "fits: planned for {}, with the model's own context; --devices and -c choose others. Give a name to any command: \
         tpc plan NAME.\n",
        report.devices
    );
    let _ = write!(out, "\n{}", wrapped(&text, usize::from(width), 2));
    for m in &report.models {
        if let Some(reason) = &m.reason {
            let text = format!("{} is {}: {reason}\n", m.name, m.state);
            out.push_str(&wrapped(&text, usize::from(width), 2));
        }
    }
    out
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let machine = Machine::new(&args.placement)?;
    let stores = input::stores();
    let wanted = args.text.as_deref().unwrap_or_default().to_lowercase();
    let mut entries = list(&stores);
    entries.retain(|e| e.name.to_lowercase().contains(&wanted));
    let progress = Progress::with_steps("reading and planning models", entries.len());
    let model = |entry| {
        progress.advance(1);
        Model::new(entry, &machine)
    };
    let report = Report {
        tpc: FormatVersion,
        models: entries.into_iter().map(model).collect(),
        folders: stores
            .folders()
            .map(|(source, path)| Folder {
                source: source.name(),
                path: path.display().to_string(),
                exists: path.is_dir(),
            })
            .collect(),
        devices: machine.devices.clone(),
    };
    drop(progress);
    match args.format {
        Format::Table => output::result(&table(&report, output::width())),
        Format::Json => output::json(&report),
    }
}
