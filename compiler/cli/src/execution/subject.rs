//! The model or artefact that a command runs.

use std::path::{Path, PathBuf};

use tpc_artefact::Artefact;
use tpc_core::placement::Placement;
use tpc_engine::{ExecutorKind, PreparedModel, artefact as fit, check_types, sequences};
use tpc_gguf::GgufFile;
use tpc_ir::program::Program;
use tpc_models::GraphResult;

use super::ExecutionArgs;
use crate::args::PlacementArgs;
use crate::artefact;
use crate::input::{self, HubArgs, Need};
use crate::output::Failure;

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct SubjectArgs {
    /// A GGUF file with its data, any shard of one, a name of `tpc models`, or an artefact (.tpc). `-hf
    /// USER/NAME[:QUANT]` names a repository; a missing model is downloaded.
    model: PathBuf,
    /// Model of an artefact, also as `--model FILE` [default: in the artefact's folder].
    #[arg(value_name = "WEIGHTS.gguf")]
    weights: Option<PathBuf>,
    #[command(flatten)]
    hub: HubArgs,
}

impl SubjectArgs {
    /// Replaces the names of models by their files; downloads missing ones.
    pub(crate) fn resolve(&mut self) -> Result<(), Failure> {
        self.hub.resolve(&mut self.model, Need::Data)?;
        match &mut self.weights {
            Some(weights) => self.hub.resolve(weights, Need::Data),
            None => Ok(()),
        }
    }

    /// Replaces the name of a further model by its file.
    pub(crate) fn resolve_other(&self, word: &mut PathBuf) -> Result<(), Failure> {
        self.hub.resolve(word, Need::Data)
    }

    pub(crate) fn path(&self) -> &Path {
        artefact::named(&self.model, self.weights.as_deref())
            .map_or(self.model.as_path(), |named| named.artefact)
    }

    /// Reads the artefact, or else calls `placement`; then opens the model.
    pub(crate) fn open(
        &self,
        options: &PlacementArgs,
        placement: impl FnOnce() -> Result<Placement, Failure>,
    ) -> Result<Opened, Failure> {
        let Some(named) = artefact::named(&self.model, self.weights.as_deref()) else {
            artefact::no_second(self.weights.as_deref())?;
            let placement = placement()?;
            let file = input::open_whole(&self.model)?;
            check_types(&file)?;
            return Ok(Opened {
                file: input::with_data(file, &self.model)?,
                name: self.model.clone(),
                devices: None,
                source: Source::Model(Box::new(placement)),
            });
        };
        let artefact = artefact::read(named.artefact)?;
        artefact::options_are_free(named.files(), &artefact, options)?;
        let file = artefact::bind(
            &named,
            &artefact,
            super::devices(options)?.as_ref(),
            options,
        )?;
        Ok(Opened {
            file,
            name: named.artefact.to_owned(),
            devices: options.devices().and_then(Result::ok).map(|d| d.text),
            source: Source::Artefact(Box::new(artefact)),
        })
    }
}

enum Source {
    Model(Box<Placement>),
    Artefact(Box<Artefact>),
}

pub(crate) struct Opened {
    pub(crate) file: GgufFile,
    name: PathBuf,
    /// The value of `--devices`, if given, for an artefact.
    devices: Option<String>,
    source: Source,
}

impl Opened {
    /// Returns the placement of a model; `None` for an artefact.
    pub(crate) fn placement(&self) -> Option<&Placement> {
        match &self.source {
            Source::Model(placement) => Some(placement),
            Source::Artefact(_) => None,
        }
    }

    /// Sets a model's context if `-c` is not given. An artefact keeps its own.
    pub(crate) fn default_context(&mut self, cells: u64) {
        if let Source::Model(placement) = &mut self.source {
            placement.ctx_size = placement.ctx_size.or(Some(cells));
        }
    }

    /// Sets a model's context. An artefact keeps its own.
    pub(crate) const fn context(&mut self, cells: u64) {
        if let Source::Model(placement) = &mut self.source {
            placement.ctx_size = Some(cells);
        }
    }

    /// Sets a model's number of sequences. An artefact keeps its own.
    pub(crate) const fn parallel(&mut self, sequences: u64) {
        if let Source::Model(placement) = &mut self.source {
            placement.parallel = sequences;
        }
    }

    /// Plans a model's embeddings, and batches of at least `tokens` tokens. An artefact keeps its own result and batch.
    pub(crate) fn embed(&mut self, tokens: usize) {
        if let Source::Model(placement) = &mut self.source {
            placement.result = GraphResult::Embeddings;
            placement.ubatch_size = placement.ubatch_size.max(tokens as u64);
        }
    }

    pub(crate) fn sequences(&self) -> usize {
        match &self.source {
            Source::Model(placement) => usize::try_from(placement.parallel)
                .unwrap_or(usize::MAX)
                .max(1),
            Source::Artefact(artefact) => sequences(artefact.program()).max(1),
        }
    }

    /// Returns CUDA for an artefact for cards unless `--executor` is given; else `otherwise`.
    pub(crate) fn executor(&self, engine: &ExecutionArgs, otherwise: ExecutorKind) -> ExecutorKind {
        match &self.source {
            Source::Artefact(artefact)
                if !engine.says_executor() && artefact.manifest().target.executor == fit::CUDA =>
            {
                ExecutorKind::Cuda
            }
            _ => otherwise,
        }
    }

    /// Returns the program of an artefact; `None` for a model.
    pub(crate) fn artefact_program(&self) -> Option<&Program> {
        match &self.source {
            Source::Model(_) => None,
            Source::Artefact(artefact) => Some(artefact.program()),
        }
    }

    pub(crate) fn plan(&self) -> Result<PreparedModel, Failure> {
        match &self.source {
            Source::Model(placement) => {
                let compiled = super::plan(&self.name, &self.file, placement)?;
                Ok(PreparedModel::of_plan(compiled, placement))
            }
            Source::Artefact(artefact) => Ok(PreparedModel::of_artefact(
                artefact,
                self.devices.as_deref(),
            )),
        }
    }
}
