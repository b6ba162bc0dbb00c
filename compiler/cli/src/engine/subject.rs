//! The subject of a command that runs a model: a model file, which is planned now, or an artefact, which was planned before.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tpc_artefact::Artefact;
use tpc_core::pipeline::{CompiledModel, ModelSize};
use tpc_core::placement::{DeviceKind, Placement, spell_devices};
use tpc_cuda::executor::Prebuilt;
use tpc_diag::{Diagnostic, codes};
use tpc_gguf::GgufFile;
use tpc_ir::op::InputKind;
use tpc_ir::program::Program;
use tpc_ir::{Graph, Op, Output, Symbol, Verified, Window, stage};

use super::{EngineArgs, ExecutorKind, cards};
use crate::args::PlacementArgs;
use crate::artefact;
use crate::input;
use crate::output::Failure;

/// A model or an artefact.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct SubjectArgs {
    /// A GGUF file with its data, any shard of one, or an artefact (.tpc).
    model: PathBuf,
    /// The model of an artefact; also as `--model FILE` [default: beside the artefact].
    #[arg(value_name = "WEIGHTS.gguf")]
    weights: Option<PathBuf>,
}

impl SubjectArgs {
    /// The subject's name in messages.
    pub(crate) fn path(&self) -> &Path {
        artefact::named(&self.model, self.weights.as_deref())
            .map_or(self.model.as_path(), |named| named.artefact)
    }

    /// Reads the artefact, or else asks for the placement, and opens the model.
    ///
    /// # Errors
    /// When a file cannot be read, the two are not of one model, or placement options are given with an artefact.
    pub(crate) fn open(
        &self,
        options: &PlacementArgs,
        placement: impl FnOnce() -> Result<Placement, Failure>,
    ) -> Result<Opened, Failure> {
        let Some(named) = artefact::named(&self.model, self.weights.as_deref()) else {
            artefact::no_second(self.weights.as_deref())?;
            let placement = placement()?;
            let file = input::open_whole(&self.model)?;
            super::can_run(&file)?;
            return Ok(Opened {
                file: input::with_data(file, &self.model)?,
                name: self.model.clone(),
                asked: None,
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
            asked: options.devices().and_then(Result::ok).map(|d| d.text),
            source: Source::Artefact(Box::new(artefact)),
        })
    }
}

enum Source {
    Model(Box<Placement>),
    Artefact(Box<Artefact>),
}

/// A subject whose files are open.
pub(crate) struct Opened {
    /// The model's file.
    pub(crate) file: GgufFile,
    name: PathBuf,
    /// The devices that an artefact is to be bound to, where that is said.
    asked: Option<String>,
    source: Source,
}

impl Opened {
    /// Sets the context where nobody said it; an artefact has its own.
    pub(crate) fn default_context(&mut self, cells: u64) {
        if let Source::Model(placement) = &mut self.source {
            placement.ctx_size = placement.ctx_size.or(Some(cells));
        }
    }

    /// The number of sequences side by side: what was asked for, or what an artefact was made for.
    pub(crate) fn sequences(&self) -> usize {
        match &self.source {
            Source::Model(placement) => count(placement.parallel).max(1),
            Source::Artefact(artefact) => sequences(artefact.program()).max(1),
        }
    }

    /// What executes it: as said or else, of an artefact for cards, cards.
    pub(crate) fn executor(&self, engine: &EngineArgs, otherwise: ExecutorKind) -> ExecutorKind {
        match &self.source {
            Source::Artefact(artefact)
                if !engine.says_executor()
                    && artefact.manifest().target.executor == artefact::CUDA =>
            {
                ExecutorKind::Cuda
            }
            _ => otherwise,
        }
    }

    /// Plans the model; an artefact is planned.
    ///
    /// # Errors
    /// Those of planning.
    pub(crate) fn plan(&self) -> Result<Ready, Failure> {
        match &self.source {
            Source::Model(placement) => {
                let compiled = super::plan(&self.name, &self.file, placement)?;
                Ok(Ready::planned(compiled, placement))
            }
            Source::Artefact(artefact) => Ok(Ready::of_artefact(artefact, self.asked.as_deref())),
        }
    }
}

/// The programs of a subject.
pub(crate) enum Code {
    /// Graphs that were planned now; they become a program for the batches that are asked for. The plan and its proof, of which
    /// nothing is needed any more, take no memory beside the weights.
    Planned(Box<Verified<stage::Programs>>),
    /// A program, for the batches that it has.
    Program(Arc<Program>),
}

/// A subject that is planned, and what commands must know of it.
pub(crate) struct Ready {
    pub(super) code: Code,
    /// The model's name.
    pub(crate) name: String,
    pub(crate) size: ModelSize,
    /// How the devices share it.
    pub(crate) split_mode: String,
    pub(crate) devices: String,
    /// The types of the caches of keys and of values.
    pub(crate) cache_types: [String; 2],
    /// What each device is bound to.
    pub(super) kinds: Vec<DeviceKind>,
    /// The executor that an artefact is for.
    executor: Option<String>,
    /// The kernels of an artefact.
    pub(super) prebuilt: Prebuilt,
    pub(crate) n_vocab: usize,
    /// The number of further tokens that it drafts.
    pub(crate) n_draft: usize,
    /// Whether tokens attend to later ones too, and a batch holds whole sequences.
    pub(crate) both_ways: bool,
    /// Whether layers have recurrent states, which forget no single token.
    pub(crate) recurrent: bool,
    /// The window of the layers that have one.
    pub(super) window: Option<Window>,
    pub(super) n_ctx: u64,
    pub(super) n_ctx_swa: u64,
    /// The most tokens of a batch.
    pub(crate) ubatch: usize,
    /// The most tokens of a batch whose logits are asked for, where a program has decided it.
    pub(crate) outputs: Option<usize>,
}

/// The devices as they were asked for.
fn devices(words: &[String]) -> String {
    let at = words.iter().position(|w| w == "--devices");
    let list = at.and_then(|i| words.get(i + 1));
    list.cloned().unwrap_or_default()
}

/// The number of sequences that a program has states for.
pub(super) fn sequences(program: &Program) -> usize {
    let shape = program.shapes.last();
    shape.map_or(1, |s| count(s.most.get(Symbol::NSeqMax)))
}

fn count(n: u64) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}

/// Whether a graph has an input.
fn has_input(graph: &Graph, kind: &InputKind) -> bool {
    let is_it = |op: &Op| matches!(op, Op::Input(i) if i.kind == *kind);
    graph.insts().any(|(_, i)| is_it(&i.op))
}

/// Whether tokens attend to later ones too.
fn both_ways(graph: &Graph) -> bool {
    has_input(graph, &InputKind::MaskBatch)
}

/// Whether layers have recurrent states.
fn recurrent(graph: &Graph) -> bool {
    has_input(graph, &InputKind::StateCells)
}

/// The kernels of an artefact, by their source.
fn prebuilt(artefact: &Artefact) -> Prebuilt {
    let mut out = Prebuilt::default();
    for module in artefact.kernels() {
        let record = &module.record;
        let code = Arc::clone(&module.code);
        out.add(*record.source.bytes(), &record.target, code);
    }
    out
}

impl Ready {
    /// The number of its devices.
    pub(crate) const fn n_devices(&self) -> usize {
        self.kinds.len()
    }

    /// Fails where an artefact is for another executor: its weights are stored otherwise.
    ///
    /// # Errors
    /// TPC0401.
    pub(super) fn fits(&self, executor: ExecutorKind) -> Result<(), Failure> {
        let (Some(made), Some(asked)) = (&self.executor, executor.artefacts()) else {
            return Ok(());
        };
        if made == asked {
            return Ok(());
        }
        let message = format!(
            "the artefact is for {made}, and the {} executor stores weights otherwise",
            executor.name()
        );
        let d = Diagnostic::new(&codes::UNSUPPORTED_OPTION, "--executor", message);
        Err(Failure::usage(d.help(format!(
            "leave it out, or compile the model with --target {asked}"
        ))))
    }

    fn planned(compiled: CompiledModel, placement: &Placement) -> Ready {
        let summary = &compiled.model.summary;
        Ready {
            name: summary.name.clone(),
            size: compiled.size,
            split_mode: compiled.mode.name().to_owned(),
            devices: spell_devices(&placement.devices),
            cache_types: [placement.cache_type_k, placement.cache_type_v].map(|t| t.to_string()),
            kinds: placement.devices.iter().map(|d| d.kind).collect(),
            executor: None,
            prebuilt: Prebuilt::default(),
            n_vocab: count(summary.n_vocab),
            n_draft: count(summary.n_draft),
            both_ways: both_ways(&compiled.model.graph),
            recurrent: recurrent(&compiled.model.graph),
            window: summary.window,
            n_ctx: compiled.caches.n_ctx,
            n_ctx_swa: compiled.caches.n_ctx_swa,
            ubatch: count(placement.ubatch_size),
            outputs: None,
            code: Code::Planned(Box::new(compiled.programs)),
        }
    }

    fn of_artefact(artefact: &Artefact, asked: Option<&str>) -> Ready {
        let (manifest, program) = (artefact.manifest(), artefact.program());
        let planned = devices(&manifest.options.words);
        let most = program.shapes.last().map(|s| s.most).unwrap_or_default();
        let drafts =
            |o: &&Output| matches!(o, Output::Named(name, _) if name.starts_with("draft_logits"));
        let logits = program.graph.outputs.iter().find_map(|o| match o {
            Output::Named(name, v) if name == "logits" => {
                program.graph.value(*v).ty.dims[0].as_const()
            }
            _ => None,
        });
        Ready {
            name: manifest.model.name.clone(),
            size: ModelSize {
                params: manifest.model.params,
                bytes: manifest.model.bytes,
            },
            split_mode: manifest.options.split_mode.clone(),
            cache_types: [
                &manifest.options.caches.type_k,
                &manifest.options.caches.type_v,
            ]
            .map(String::clone),
            kinds: cards::kinds(asked.unwrap_or(&planned), manifest.devices.len()),
            devices: planned,
            executor: Some(manifest.target.executor.clone()),
            prebuilt: prebuilt(artefact),
            n_vocab: count(logits.unwrap_or(0)),
            n_draft: program.graph.outputs.iter().filter(drafts).count(),
            both_ways: both_ways(&program.graph),
            recurrent: recurrent(&program.graph),
            window: manifest.model.window.map(Window::from),
            n_ctx: most.get(Symbol::NCtx),
            n_ctx_swa: most.get(Symbol::NCtxSwa),
            ubatch: count(most.get(Symbol::NTokens)),
            outputs: Some(count(most.get(Symbol::NOutputs))),
            code: Code::Program(Arc::new(program.clone())),
        }
    }
}
