//! A model that runs: from a file and placement options to a session on an executor.
//!
//! - `cards` binds the devices of a plan to cards;
//! - `limits` knows what a model was not made for;
//! - `options` has the executor and the threads of the command line;
//! - `cores` counts the processor's cores that this process may use;
//! - `subject` is what a command runs: a model that is planned now, or an artefact;
//! - `shapes` are those of the batches of a session;
//! - `weights` gives a file's tensors to executors.
//!
//! The steps are those of every command that runs a model: [`SubjectArgs::open`], a plan, [`Loading::load`].

pub(super) mod cards;
mod cores;
mod limits;
mod options;
mod shapes;
mod subject;
mod weights;

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use tpc_core::foreign_types::ForeignTypes;
use tpc_core::pipeline::{CompiledModel, compile};
use tpc_core::placement::{DeviceKind, DeviceList, Placement, SplitMode};
use tpc_cpu::{CpuExecutor, CpuOptions};
use tpc_cuda::{Bound, Build, CudaExecutor, CudaOptions, Driver, DriverError, Edges};
use tpc_diag::{Diagnostic, codes};
use tpc_gguf::GgufFile;
use tpc_ir::program::{Program, Target, verify};
use tpc_ir::{DType, Verified, stage};
use tpc_passes::assemble;
use tpc_runtime::{
    Batch, ExecError, Executor, KernelTime, SaveError, SequenceText, Session, SessionConfig, Tensor,
};

use crate::args::{Defaults, PlacementArgs};
use crate::artefact::Asked;
use crate::memory;
use crate::output::Failure;
use crate::progress::Progress;
use crate::values::DeviceLists;
pub(super) use limits::{beyond_training, in_vocabulary};
pub(super) use options::{EngineArgs, ExecutorKind};
use shapes::Parts;
use subject::Code;
pub(super) use subject::{Opened, Ready, SubjectArgs};
use weights::FileWeights;

/// A session, whatever executes it.
pub(super) trait Model {
    /// Decodes a batch: the logits of its output rows, `[n_vocab, n_outputs]`, which stay until the next step.
    ///
    /// # Errors
    /// Those of [`Session::step`].
    fn step(&mut self, batch: &Batch) -> Result<&Tensor, ExecError>;

    /// Drafts further tokens for the last batch.
    ///
    /// # Errors
    /// Those of [`Session::draft_step`].
    fn draft_step(&mut self, next: &[u32]) -> Result<&Tensor, ExecError>;

    /// The number of blocks that draft.
    fn n_drafts(&self) -> usize;

    /// Removes all sequences and clears all states.
    fn clear(&mut self);

    /// Removes a sequence.
    fn remove_sequence(&mut self, seq: u32);

    /// The number of tokens of a sequence.
    fn next_position(&self, seq: u32) -> u64;

    /// Whether a sequence can go back to its first `pos` tokens.
    fn can_truncate(&self, seq: u32, pos: u64) -> bool;

    /// Takes the tokens of a sequence from position `pos` on.
    ///
    /// # Errors
    /// Those of [`Session::truncate`].
    fn truncate(&mut self, seq: u32, pos: u64) -> Result<(), ExecError>;

    /// Keeps what a sequence needs to go back to where it is.
    ///
    /// # Errors
    /// Those of [`Session::checkpoint`].
    fn checkpoint(&mut self, seq: u32) -> Result<(), ExecError>;

    /// Takes `n` tokens of a sequence from position `from` on, and moves those behind them up.
    ///
    /// # Errors
    /// Those of [`Session::shift`].
    fn shift(&mut self, seq: u32, from: u64, n: u64) -> Result<(), ExecError>;

    /// Writes the session and the texts of its sequences.
    ///
    /// # Errors
    /// Those of [`Session::save`].
    fn save(
        &self,
        model: u64,
        texts: &[SequenceText],
        out: &mut dyn Write,
    ) -> Result<(), SaveError>;

    /// Makes the session what was saved, and returns the texts of its sequences.
    ///
    /// # Errors
    /// Those of [`Session::load`].
    fn load(&mut self, model: u64, bytes: &[u8]) -> Result<Vec<SequenceText>, ExecError>;

    /// The times of kernels since the last call; none where they are not measured.
    fn take_profile(&mut self) -> Vec<KernelTime>;
}

impl<E: Executor> Model for Session<E> {
    fn step(&mut self, batch: &Batch) -> Result<&Tensor, ExecError> {
        Session::step(self, batch)
    }

    fn draft_step(&mut self, next: &[u32]) -> Result<&Tensor, ExecError> {
        Session::draft_step(self, next)
    }

    fn n_drafts(&self) -> usize {
        Session::n_drafts(self)
    }

    fn clear(&mut self) {
        Session::clear(self);
    }

    fn remove_sequence(&mut self, seq: u32) {
        Session::remove_sequence(self, seq);
    }

    fn next_position(&self, seq: u32) -> u64 {
        Session::next_position(self, seq)
    }

    fn can_truncate(&self, seq: u32, pos: u64) -> bool {
        Session::can_truncate(self, seq, pos)
    }

    fn truncate(&mut self, seq: u32, pos: u64) -> Result<(), ExecError> {
        Session::truncate(self, seq, pos)
    }

    fn checkpoint(&mut self, seq: u32) -> Result<(), ExecError> {
        Session::checkpoint(self, seq)
    }

    fn shift(&mut self, seq: u32, from: u64, n: u64) -> Result<(), ExecError> {
        Session::shift(self, seq, from, n)
    }

    fn save(
        &self,
        model: u64,
        texts: &[SequenceText],
        out: &mut dyn Write,
    ) -> Result<(), SaveError> {
        Session::save(self, model, texts, out)
    }

    fn load(&mut self, model: u64, bytes: &[u8]) -> Result<Vec<SequenceText>, ExecError> {
        Session::load(self, model, bytes)
    }

    fn take_profile(&mut self) -> Vec<KernelTime> {
        Session::take_profile(self)
    }
}

/// An error of the executor, as a diagnostic.
pub(super) fn execution_error(e: &ExecError) -> Diagnostic {
    Diagnostic::new(e.code(), "execution", e.to_string()).help(e.help())
}

/// An error of the executor, as the end of a command.
pub(super) fn execution_failure(e: &ExecError) -> Failure {
    Failure::findings(vec![execution_error(e)])
}

/// The devices that the options name; none where they name none.
pub(super) fn devices(args: &PlacementArgs) -> Result<Option<Asked>, Failure> {
    if !args.names_a_machine() {
        return Ok(None);
    }
    let defaults = Defaults {
        cache: DType::F16,
        split_mode: SplitMode::Auto,
    };
    let placement = args.placement(defaults)?;
    let (devices, topology) = (placement.devices, placement.topology);
    Ok(Some(Asked {
        text: match args.devices() {
            Some(Ok(lists)) => lists.text,
            _ => String::new(),
        },
        kinds: devices.iter().map(|d| d.kind).collect(),
        memory: (0..devices.len())
            .map(|i| topology.device(i).usable_memory().map(|m| m as u64))
            .collect(),
    }))
}

/// The placement that the options ask for: one CPU device unless they name others. Emulated devices go by any name.
pub(super) fn placement(
    args: &PlacementArgs,
    defaults: Defaults,
    executor: ExecutorKind,
) -> Result<Placement, Failure> {
    let cure = "`--executor cuda` runs it on cards; without one, `--executor emulated-cuda` runs the same kernels slowly, and \
                `--devices cpu` or `cpu,cpu` runs on the processor";
    placement_for(args, defaults, executor, cure)
}

/// The same, with what to do where the devices are cards and the executor takes none.
pub(super) fn placement_for(
    args: &PlacementArgs,
    defaults: Defaults,
    executor: ExecutorKind,
    cure: &str,
) -> Result<Placement, Failure> {
    let placement = match args.names_a_machine() {
        true => args.placement(defaults)?,
        false => {
            let one = match executor {
                ExecutorKind::Cuda => "cuda:0",
                _ => "cpu",
            };
            let one = DeviceList::parse(one).map_err(Failure::usage)?;
            args.placement_on(&one, defaults)?
        }
    };
    let card = (placement.devices.iter())
        .find(|d| matches!(d.kind, DeviceKind::Cuda(_)) || d.card.is_some());
    match card {
        Some(card) if !executor.takes_cards() => {
            let message = format!(
                "{} is a card, and the {} executor runs on the processor",
                card.name,
                executor.name()
            );
            let d = Diagnostic::new(&codes::UNSUPPORTED_OPTION, "--devices", message);
            Err(Failure::usage(d.help(cure)))
        }
        _ => Ok(Placement {
            storage: executor.target(),
            ..placement
        }),
    }
}

/// Whether the devices are all cards: by their numbers, or by names that the cards of this machine have.
pub(super) fn names_cards(args: &PlacementArgs) -> bool {
    match args.devices() {
        Some(Ok(DeviceLists { lists, .. })) => {
            lists.iter().all(cards::are_cards) || lists.iter().all(cards::are_here)
        }
        _ => false,
    }
}

/// Fails where a device is the processor.
///
/// # Errors
/// TPC0401.
pub(super) fn on_cards(placement: &Placement) -> Result<(), Failure> {
    let kinds: Vec<DeviceKind> = placement.devices.iter().map(|d| d.kind).collect();
    cards::no_processor(&kinds)
}

/// Fails if a tensor has a type that tpc has no kernels for.
///
/// # Errors
/// TPC0412.
pub(super) fn can_run(file: &GgufFile) -> Result<(), Failure> {
    match ForeignTypes::of_file(file.header()) {
        Some(foreign) => Err(Failure::findings(vec![foreign.refusal()])),
        None => Ok(()),
    }
}

/// The plan of a model, which must be proved.
pub(super) fn plan(
    name: &Path,
    file: &GgufFile,
    placement: &Placement,
) -> Result<CompiledModel, Failure> {
    let _progress = Progress::start(format!("planning {}", name.display()));
    let compiled = compile(file, placement).map_err(Failure::from_diagnostics)?;
    match compiled.proof_error() {
        Some(d) => Err(Failure::from_diagnostics(vec![d])),
        None => Ok(compiled),
    }
}

/// What a session is made of.
#[derive(Clone, Copy)]
pub(super) struct Loading<'a> {
    /// The model's name in messages.
    pub(super) name: &'a Path,
    pub(super) file: &'a GgufFile,
    pub(super) subject: &'a Ready,
    /// The most cells of a cache that are used; the plan may have more.
    pub(super) cells: usize,
    /// The most tokens of a batch.
    pub(super) batch: usize,
    /// The most tokens of a batch whose logits are asked for.
    pub(super) outputs: usize,
    /// The number of sequences.
    pub(super) sequences: usize,
    pub(super) executor: ExecutorKind,
    /// Threads of all devices together.
    pub(super) threads: usize,
    /// How kernels of CUDA follow each other.
    pub(super) edges: Edges,
    /// Whether kernels are timed.
    pub(super) profile: bool,
    /// Whether what was decided while loading is said.
    pub(super) verbose: bool,
}

impl<'a> Loading<'a> {
    /// A program has as many cells as it has; those of a plan are made for what is used.
    fn used(&self, planned: u64) -> usize {
        let planned = usize::try_from(planned).unwrap_or(usize::MAX);
        match self.subject.code {
            Code::Planned(_) => planned.min(self.cells),
            Code::Program(_) => planned,
        }
    }

    /// The most tokens of a sequence.
    pub(super) fn each(&self) -> usize {
        self.parts().each
    }

    /// How the sequences share the caches.
    fn parts(&self) -> Parts {
        let cells = [self.subject.n_ctx, self.subject.n_ctx_swa].map(|n| self.used(n));
        let Ready { window, ubatch, .. } = self.subject;
        Parts::new(cells, *window, *ubatch, self.sequences)
    }

    /// The configuration of the session.
    fn config(&self) -> SessionConfig {
        let cells = [self.subject.n_ctx, self.subject.n_ctx_swa].map(|n| self.used(n));
        let sequences = match &self.subject.code {
            Code::Planned(_) => self.sequences,
            Code::Program(program) => subject::sequences(program),
        };
        let Parts { count, swa, .. } = self.parts();
        shapes::config(cells, self.subject.window, sequences).with_parts(count, swa)
    }

    /// The model in the executor that the options ask for, with its weights loaded.
    ///
    /// # Errors
    /// Where the program does not verify, memory does not suffice, or an op has no kernel.
    pub(super) fn load(self) -> Result<Box<dyn Model + 'a>, Failure> {
        let model = self.session();
        memory::give_back();
        model
    }

    fn session(self) -> Result<Box<dyn Model + 'a>, Failure> {
        let n = self.file.header().tensors().len();
        let progress = Progress::with_steps(format!("loading {}", self.name.display()), n);
        let weights = FileWeights {
            file: self.file,
            progress: &progress,
        };
        let config = self.config();
        self.subject.fits(self.executor)?;
        match self.executor {
            ExecutorKind::Reference => {
                let graph = match &self.subject.code {
                    Code::Planned(programs) => programs,
                    Code::Program(program) => &program.graph,
                };
                let session = Session::new(graph, &weights, config);
                Ok(Box::new(session.map_err(|e| execution_failure(&e))?))
            }
            ExecutorKind::Cpu => {
                let session = self.on_cpu(&weights, config)?;
                Ok(Box::new(session))
            }
            ExecutorKind::Cuda => {
                cards::no_processor(&self.subject.kinds)?;
                let driver = cards::real(&self.subject.kinds);
                Ok(Box::new(self.on_cuda(driver, &weights, config)?))
            }
            ExecutorKind::EmulatedCuda => {
                let driver = cards::emulated(&self.subject.kinds, Build::Plain);
                Ok(Box::new(self.on_cuda(driver, &weights, config)?))
            }
            ExecutorKind::CheckedCuda => {
                let driver = cards::emulated(&self.subject.kinds, Build::Checked);
                Ok(Box::new(self.on_cuda(driver, &weights, config)?))
            }
        }
    }

    /// A session on the CPU executor.
    fn on_cpu(
        &self,
        weights: &FileWeights<'_>,
        config: SessionConfig,
    ) -> Result<Session<CpuExecutor>, Failure> {
        let program = match &self.subject.code {
            Code::Planned(programs) => self.assembled(programs, &config)?,
            // It was verified when it was read.
            Code::Program(program) => Arc::clone(program),
        };
        let options = CpuOptions {
            profile: self.profile,
            ..CpuOptions::with_threads(self.threads)
        };
        let executor = CpuExecutor::new(program, weights, options);
        let session = executor.and_then(|e| Session::with_executor(e, config));
        session.map_err(|e| match &e {
            // What is too large is mostly the caches.
            ExecError::Size { .. } => {
                let SessionConfig { n_ctx, .. } = config;
                let cure = format!("a smaller context, -c, which is {n_ctx} now; or batch, -ub");
                Failure::findings(vec![execution_error(&e).help(cure)])
            }
            _ => execution_failure(&e),
        })
    }

    /// A session on the devices of a driver.
    fn on_cuda<D: Driver>(
        &self,
        driver: Result<Bound<D>, DriverError>,
        weights: &FileWeights<'_>,
        config: SessionConfig,
    ) -> Result<Session<CudaExecutor<Bound<D>>>, Failure> {
        let failed = |e: DriverError| execution_failure(&tpc_cuda::executor::error(e));
        let driver = driver.map_err(failed)?;
        let program = match &self.subject.code {
            Code::Planned(programs) => self.assembled(programs, &config)?,
            Code::Program(program) => Arc::clone(program),
        };
        let options = CudaOptions {
            edges: self.edges,
            ..CudaOptions::with_threads(self.threads)
        };
        let executor =
            CudaExecutor::with_code(program, weights, driver, options, &self.subject.prebuilt);
        let executor = executor.map_err(|e| execution_failure(&e))?;
        if self.verbose {
            cards::tell_apart(executor.apart());
        }
        Session::with_executor(executor, config).map_err(|e| execution_failure(&e))
    }

    /// The program of a plan for the executor, which is verified.
    fn assembled(
        &self,
        programs: &Verified<stage::Programs>,
        config: &SessionConfig,
    ) -> Result<Arc<Program>, Failure> {
        let sizes = [self.batch, self.outputs];
        let program = program_for(programs, config, sizes, self.executor.target())?;
        verify(&program).map_err(|errors| self.refused(&errors))?;
        Ok(Arc::new(program))
    }

    /// A program that the verifier rejects: a fault of tpc's own.
    fn refused(&self, errors: &[tpc_ir::program::verify::ProgramError]) -> Failure {
        let name = self.name.display().to_string();
        let diagnostic = |e: &tpc_ir::program::verify::ProgramError| {
            Diagnostic::new(&codes::UNVERIFIED_PLAN, &name, format!("{}: {e}", e.code)).help(
                "this is a fault of tpc; please report it; --executor reference runs the model",
            )
        };
        Failure::findings(errors.iter().take(8).map(diagnostic).collect())
    }
}

/// The program of a plan on a target, for batches of one token and of up to `tokens`, of at most `outputs` of which logits are
/// asked for. It is not verified.
fn program_for(
    programs: &Verified<stage::Programs>,
    config: &SessionConfig,
    [tokens, outputs]: [usize; 2],
    target: &dyn Target,
) -> Result<Program, Failure> {
    // A batch has no more tokens than the context has cells, and memory for more would be in vain.
    let shapes = shapes::shapes(config, tokens.min(config.n_ctx), outputs);
    assemble(programs, &shapes, target).map_err(|e| {
        execution_failure(&ExecError::Size {
            what: e.to_string(),
        })
    })
}

/// The tokens of a batch of an artefact whose logits can be asked for, at least; one per sequence, if these are more.
const OUTPUTS: usize = 16;

/// The program of a plan for whatever batches come: of as many tokens and sequences as the placement says.
///
/// # Errors
/// Where sizes overflow.
pub(super) fn program(
    compiled: &CompiledModel,
    placement: &Placement,
    target: &dyn Target,
) -> Result<Program, Failure> {
    let count = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
    let (tokens, sequences) = (count(placement.ubatch_size), count(placement.parallel));
    let caches = compiled.caches;
    let cells = [caches.n_ctx, caches.n_ctx_swa].map(count);
    let config = shapes::config(cells, compiled.model.summary.window, sequences);
    let outputs = OUTPUTS.max(sequences).min(tokens);
    program_for(&compiled.programs, &config, [tokens, outputs], target)
}
