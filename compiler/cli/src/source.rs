//! The source of a plan: a model file or a captured graph.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use clap::Args;
use tpc_ir::{DType, Symbol};

use super::args::Defaults;
use super::codes;
use super::input::{self, HubArgs, Model, Need, Place};
use super::output::Failure;
use super::progress::Progress;
use tpc_core::advice::{AdviceCheck, Advisor, Limits};
use tpc_core::pipeline::{CompiledModel, Origin, compile, compile_capture};
use tpc_core::placement::{Placement, SplitMode};
use tpc_core::report::PlanReport;
use tpc_diag::{Diagnostic, Severity, codes as common};
use tpc_ggml::capture::{self, CaptureError, CapturedGraph, Record};
use tpc_lint::plan_report_with_advice;
use tpc_passes::machine::Engine;

#[derive(Clone, Debug, Args)]
pub(super) struct SourceArgs {
    /// A GGUF file, any shard of one, its folder, its address, or a name of `tpc models`; the header suffices. `-hf
    /// USER/NAME[:QUANT]` names a repository.
    #[arg(required_unless_present = "graph", conflicts_with = "graph")]
    model: Option<PathBuf>,
    /// A captured ggml graph (JSON lines), instead of a model.
    #[arg(long, value_name = "CAPTURE.jsonl")]
    graph: Option<PathBuf>,
    #[command(flatten)]
    hub: HubArgs,
    /// The model, opened at first use and shared between clones.
    #[arg(skip)]
    opened: Rc<OnceCell<Rc<Model>>>,
}

pub(super) enum Opened {
    File(Rc<Model>),
    Capture(Box<CapturedGraph>),
}

impl Opened {
    fn origin(&self) -> Origin<'_> {
        match self {
            Opened::File(model) => Origin::File(&model.file),
            Opened::Capture(captured) => Origin::Capture(captured),
        }
    }
}

/// A verified plan, and facts about its source.
pub(super) struct Source {
    pub(super) compiled: CompiledModel,
    opened: Opened,
    /// Notes on a capture, or on how a model was found.
    pub(super) notes: Vec<Diagnostic>,
    /// The capture's line number for each instruction of the model's graph; empty for a model.
    pub(super) lines: Vec<usize>,
    /// The size of each symbol in a capture; `None` for a model.
    pub(super) batch: Option<Vec<(Symbol, u64)>>,
}

/// The handling of an unproved plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unproved {
    Error,
    Warning,
}

impl Source {
    /// Returns the plan if it is proved, or if an unproved plan is only a warning.
    pub(super) fn proved(mut self, unproved: Unproved) -> Result<Source, Failure> {
        match (self.compiled.proof_error(), unproved) {
            (None, _) => {}
            (Some(d), Unproved::Warning) => self.notes.push(Diagnostic {
                severity: Severity::Warning,
                ..d
            }),
            (Some(d), Unproved::Error) => return Err(Failure::from_diagnostics(vec![d])),
        }
        Ok(self)
    }

    pub(super) fn is_bare_header(&self) -> bool {
        match &self.opened {
            Opened::File(model) => !model.file.has_data(),
            Opened::Capture(_) => false,
        }
    }

    /// Builds the plan's report, with advice for the placement's engine.
    pub(super) fn report(&self, path: &str, placement: &Placement) -> PlanReport {
        let cures = Cures {
            engine: placement.engine,
            implied_shares: false,
            vet: &|_, _| true,
        };
        self.report_with(path, placement, &cures)
    }

    /// Builds the plan's report with advice; shows the search on a terminal.
    pub(super) fn report_with(
        &self,
        path: &str,
        placement: &Placement,
        cures: &Cures<'_>,
    ) -> PlanReport {
        let progress = Progress::counting("searching for options that fit or are faster");
        let advisor = Advisor {
            origin: self.opened.origin(),
            limits: Limits::default(),
            watch: &|| progress.advance(1),
            engine: cures.engine,
            implied_shares: cures.implied_shares,
            vet: cures.vet,
        };
        plan_report_with_advice(path, placement, &self.compiled, &advisor)
    }
}

/// The engine of the cures, and the final check of each cure.
pub(super) struct Cures<'a> {
    pub(super) engine: Engine,
    /// True if the user did not give the placement's shares.
    pub(super) implied_shares: bool,
    pub(super) vet: &'a AdviceCheck<'a>,
}

/// The longest accepted capture, in bytes.
const MAX_CAPTURE: u64 = 1 << 30;

pub(super) fn read_capture(path: &Path) -> Result<CapturedGraph, Failure> {
    let bytes = input::read_file(path, MAX_CAPTURE)?;
    let text = String::from_utf8_lossy(&bytes);
    let name = path
        .file_stem()
        .map(|s| s.to_string_lossy().into_owned())
        .unwrap_or_default();
    capture::read(&text, &name).map_err(|e| unreadable(path, &bytes, e))
}

/// Reads the records of a capture.
pub(super) fn read_records(path: &Path) -> Result<Vec<Record>, Failure> {
    let bytes = input::read_file(path, MAX_CAPTURE)?;
    let text = String::from_utf8_lossy(&bytes);
    capture::records(&text).map_err(|e| unreadable(path, &bytes, e))
}

fn unreadable(path: &Path, bytes: &[u8], e: CaptureError) -> Failure {
    let d = match bytes.starts_with(b"GGUF") {
        true => Diagnostic::new(e.code(), "", "a GGUF model, not a captured graph")
            .help("give the model without --graph; `tpc rpc --capture DIR` captures graphs"),
        false => Diagnostic::from(e),
    };
    Failure::usage(Diagnostic {
        entity: path.display().to_string().into(),
        ..d
    })
}

impl SourceArgs {
    pub(super) fn new(model: Option<PathBuf>, graph: Option<PathBuf>) -> SourceArgs {
        SourceArgs {
            model,
            graph,
            hub: HubArgs::default(),
            opened: Rc::default(),
        }
    }

    /// Replaces the name of a model by its file or address.
    pub(super) fn resolve(&mut self) -> Result<(), Failure> {
        match &mut self.model {
            Some(word) => self.hub.resolve(word, Need::Header),
            None => Ok(()),
        }
    }

    /// Replaces the names of further models.
    pub(super) fn resolve_all(&self, words: &mut [PathBuf]) -> Result<(), Failure> {
        words
            .iter_mut()
            .try_for_each(|word| self.hub.resolve(word, Need::Header))
    }

    /// Replaces the name of a file besides the model. Such a file must be on this machine.
    pub(super) fn resolve_beside(&self, word: &mut String) -> Result<(), Failure> {
        let mut path = PathBuf::from(&word);
        HubArgs::offline().resolve(&mut path, Need::Header)?;
        *word = path.display().to_string();
        Ok(())
    }

    pub(super) fn model(&self) -> Result<Option<&Rc<Model>>, Failure> {
        let Some(path) = self.model.as_deref().filter(|_| self.graph().is_none()) else {
            return Ok(None);
        };
        if self.opened.get().is_none() {
            // The cell is used by one thread. If it is already set, keep the first file.
            let _ = self.opened.set(Rc::new(input::open(path)?));
        }
        Ok(self.opened.get())
    }

    /// Returns the capture: the value of `--graph`, or a capture given as the model.
    pub(super) fn graph(&self) -> Option<&Path> {
        let model = || self.model.as_deref().filter(|m| input::is_capture(m));
        self.graph.as_deref().or_else(model)
    }

    /// Returns the notes on how the source was found. The list is complete after compiling.
    pub(super) fn notes(&self) -> Vec<Diagnostic> {
        let model = self.opened.get().map(|m| m.notes.clone());
        model
            .unwrap_or_default()
            .into_iter()
            .chain(self.note())
            .collect()
    }

    fn note(&self) -> Option<Diagnostic> {
        let path = self.graph().filter(|_| self.graph.is_none())?;
        let path = path.display().to_string();
        let message = format!("`{path}` is a captured graph: read as `--graph {path}`");
        let d = Diagnostic::new(&codes::READ_AS, &path, message);
        Some(d.help(format!("write --graph {path}")))
    }

    /// Returns the word given as the model.
    pub(super) fn given(&self) -> Option<&Path> {
        self.model.as_deref()
    }

    fn file(&self) -> PathBuf {
        self.model
            .clone()
            .or_else(|| self.graph.clone())
            .unwrap_or_default()
    }

    /// Returns default options. The default split mode for captures is `tensor`, because `auto` would not split small
    /// test models.
    pub(super) fn defaults(&self) -> Defaults {
        Defaults {
            cache: DType::F16,
            split_mode: match self.graph() {
                Some(_) => SplitMode::Tensor,
                None => SplitMode::Auto,
            },
        }
    }

    /// Returns the model file's path, even if a folder was given; some programs accept only files.
    pub(super) fn model_path(&self) -> String {
        let word = self.file();
        match word.is_dir().then(|| input::locate(&word)) {
            Some(Ok(Place::Local(path, _))) => path.display().to_string(),
            _ => self.path(),
        }
    }

    pub(super) fn path(&self) -> String {
        input::shown(&self.file())
    }

    pub(super) fn compile(&self, placement: &Placement) -> Result<Source, Failure> {
        let devices = placement.devices.len();
        let _progress = Progress::start(format!("planning {} for {devices} devices", self.path()));
        let Some(path) = self.graph() else {
            let model = self.model()?.ok_or_else(missing)?;
            let compiled = compile(&model.file, placement).map_err(Failure::from_diagnostics)?;
            return Ok(Source {
                compiled,
                notes: model.notes.clone(),
                opened: Opened::File(Rc::clone(model)),
                lines: Vec::new(),
                batch: None,
            });
        };
        let captured = read_capture(path)?;
        let compiled = compile_capture(&captured, placement).map_err(Failure::from_diagnostics)?;
        Ok(Source {
            compiled,
            notes: self
                .note()
                .into_iter()
                .chain(captured.notes.clone())
                .collect(),
            lines: captured.lines.clone(),
            batch: Some(captured.batch.clone()),
            opened: Opened::Capture(Box::new(captured)),
        })
    }
}

fn missing() -> Failure {
    let d = Diagnostic::new(&common::COMMAND_LINE, "MODEL", "a model is missing");
    Failure::usage(d.help("give a GGUF file, -hf USER/NAME, or --graph CAPTURE.jsonl"))
}
