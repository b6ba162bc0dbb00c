//! The source of a plan: a model file, or a captured graph.

use std::path::{Path, PathBuf};

use clap::Args;
use tpc_ir::{DType, Symbol};

use super::args::Defaults;
use super::output::Failure;
use super::progress::Progress;
use tpc_core::pipeline::{Compiled, compile, compile_capture};
use tpc_core::placement::{Placement, SplitMode};
use tpc_diag::{Diagnostic, Severity};
use tpc_ggml::capture::{self, CapturedGraph};
use tpc_gguf::GgufFile;

/// A model or a capture.
#[derive(Clone, Debug, Args)]
pub(super) struct SourceArgs {
    /// A GGUF file, or any shard of one; the header suffices.
    #[arg(required_unless_present = "graph", conflicts_with = "graph")]
    model: Option<PathBuf>,
    /// A captured ggml graph (JSON lines), instead of a model.
    #[arg(long, value_name = "CAPTURE.jsonl")]
    graph: Option<PathBuf>,
}

/// A verified plan, with facts about its source.
pub(super) struct Source {
    pub(super) compiled: Compiled,
    /// Notes of a capture.
    pub(super) notes: Vec<Diagnostic>,
    /// Per instruction of the model's graph, the line of a capture; empty for a model.
    pub(super) lines: Vec<usize>,
    /// The size of each symbol in a capture; `None` for a model.
    pub(super) batch: Option<Vec<(Symbol, u64)>>,
}

/// The treatment of a plan that is not proved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unproved {
    /// There is no plan.
    Error,
    /// The plan is given with a warning.
    Warning,
}

impl Source {
    /// The plan, if it is proved or a warning suffices.
    pub(super) fn proved(mut self, unproved: Unproved) -> Result<Source, Failure> {
        match (self.compiled.unproved(), unproved) {
            (None, _) => {}
            (Some(d), Unproved::Warning) => self.notes.push(Diagnostic {
                severity: Severity::Warning,
                ..d
            }),
            (Some(d), Unproved::Error) => return Err(Failure::from_diagnostics(vec![d])),
        }
        Ok(self)
    }
}

/// Reads a capture.
pub(super) fn read_capture(path: &Path) -> Result<CapturedGraph, Failure> {
    let bytes = std::fs::read(path).map_err(|e| Failure::file(path, &e))?;
    let text = String::from_utf8_lossy(&bytes);
    let name = path
        .file_stem()
        .map(|s| s.to_string_lossy().into_owned())
        .unwrap_or_default();
    capture::read(&text, &name).map_err(|e| {
        let d = Diagnostic::from(e);
        Failure::usage(Diagnostic {
            entity: path.display().to_string().into(),
            ..d
        })
    })
}

impl SourceArgs {
    /// A model, or else a capture.
    pub(super) fn new(model: Option<PathBuf>, graph: Option<PathBuf>) -> SourceArgs {
        SourceArgs { model, graph }
    }

    /// The model's file.
    pub(super) fn model(&self) -> Option<&Path> {
        self.model.as_deref()
    }

    /// The capture.
    pub(super) fn graph(&self) -> Option<&Path> {
        self.graph.as_deref()
    }

    fn file(&self) -> PathBuf {
        self.model
            .clone()
            .or_else(|| self.graph.clone())
            .unwrap_or_default()
    }

    /// The values of options that are not given. The default split mode of a capture is `tensor`: captures are often of
    /// small test models, which `auto` would leave whole.
    pub(super) fn defaults(&self) -> Defaults {
        Defaults {
            cache: DType::F16,
            split_mode: match self.graph {
                Some(_) => SplitMode::Tensor,
                None => SplitMode::Auto,
            },
        }
    }

    /// The file's path, for reports.
    pub(super) fn path(&self) -> String {
        self.file().display().to_string()
    }

    /// Plans the source and verifies the plan.
    pub(super) fn compile(&self, placement: &Placement) -> Result<Source, Failure> {
        let devices = placement.devices.len();
        let _progress = Progress::start(format!("planning {} for {devices} devices", self.path()));
        let Some(path) = &self.graph else {
            let file = GgufFile::open(self.file())
                .map_err(|e| Failure::from_diagnostics(vec![e.into()]))?;
            let compiled = compile(&file, placement).map_err(Failure::from_diagnostics)?;
            return Ok(Source {
                compiled,
                notes: Vec::new(),
                lines: Vec::new(),
                batch: None,
            });
        };
        let captured = read_capture(path)?;
        let compiled = compile_capture(&captured, placement).map_err(Failure::from_diagnostics)?;
        Ok(Source {
            compiled,
            notes: captured.notes,
            lines: captured.lines,
            batch: Some(captured.batch),
        })
    }
}
