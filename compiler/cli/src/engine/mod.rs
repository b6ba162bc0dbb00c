//! A model that runs: from a file and placement options to a session on an executor.
//!
//! - `options` has the executor and the threads of the command line;
//! - `cores` counts the processor's cores that this process may use;
//! - `weights` gives a file's tensors to executors.
//!
//! The steps are those of every command that runs a model: [`open`], [`placement`], [`plan`], [`Loading::load`].

mod cores;
mod options;
mod weights;

use std::path::Path;
use std::sync::Arc;

use tpc_core::pipeline::{Compiled, compile};
use tpc_core::placement::{DeviceKind, DeviceList, Placement};
use tpc_cpu::{CpuExecutor, CpuOptions, CpuTarget};
use tpc_diag::{Diagnostic, codes};
use tpc_gguf::GgufFile;
use tpc_ir::program::{BatchShape, verify};
use tpc_ir::{Bindings, Symbol};
use tpc_passes::assemble;
use tpc_runtime::{
    Batch, ExecError, Executor, KernelTime, Options, Session, SessionConfig, Tensor,
};

use crate::args::{Defaults, PlacementArgs};
use crate::input;
use crate::output::Failure;
use crate::progress::Progress;
pub(super) use options::{EngineArgs, ExecutorKind};
use weights::FileWeights;

/// A session, whatever executes it.
pub(super) trait Model {
    /// Decodes a batch: the logits of its output rows, `[n_vocab, n_outputs]`.
    ///
    /// # Errors
    /// Those of [`Session::decode`].
    fn decode(&mut self, batch: &Batch) -> Result<Tensor, ExecError>;

    /// Drafts further tokens for the last batch.
    ///
    /// # Errors
    /// Those of [`Session::draft`].
    fn draft(&mut self, next: &[u32]) -> Result<Tensor, ExecError>;

    /// Removes all sequences and clears all states.
    fn clear(&mut self);

    /// The times of kernels since the last call; none where they are not measured.
    fn take_profile(&mut self) -> Vec<KernelTime>;
}

impl<E: Executor> Model for Session<E> {
    fn decode(&mut self, batch: &Batch) -> Result<Tensor, ExecError> {
        Session::decode(self, batch)
    }

    fn draft(&mut self, next: &[u32]) -> Result<Tensor, ExecError> {
        Session::draft(self, next)
    }

    fn clear(&mut self) {
        Session::clear(self);
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

/// Opens a model that has its tensor data.
pub(super) fn open(path: &Path) -> Result<GgufFile, Failure> {
    let file = input::open_whole(path)?;
    if file.has_data() {
        return Ok(file);
    }
    let name = path.display().to_string();
    let d = Diagnostic::new(
        &codes::NO_TENSOR_DATA,
        name,
        "a header without data cannot be executed",
    );
    Err(Failure::usage(d.help(
        "give the whole model; `tpc synth` makes a small one",
    )))
}

/// The placement that the options ask for: one CPU device unless they name others.
pub(super) fn placement(args: &PlacementArgs, defaults: Defaults) -> Result<Placement, Failure> {
    let placement = match args.names_a_machine() {
        true => args.placement(defaults)?,
        false => {
            let cpu = DeviceList::parse("cpu").map_err(Failure::usage)?;
            args.placement_on(&cpu, defaults)?
        }
    };
    let card = (placement.devices.iter())
        .find(|d| matches!(d.kind, DeviceKind::Cuda(_)) || d.card.is_some());
    match card {
        None => Ok(placement),
        Some(card) => {
            let message = format!("programs run on the CPU only yet, not on {}", card.name);
            let d = Diagnostic::new(&codes::UNSUPPORTED_OPTION, "--devices", message);
            Err(Failure::usage(d.help(
                "--devices cpu; `cpu,cpu` divides the model over two devices of this process",
            )))
        }
    }
}

/// The plan of a model, which must be proved.
pub(super) fn plan(
    name: &Path,
    file: &GgufFile,
    placement: &Placement,
) -> Result<Compiled, Failure> {
    let _progress = Progress::start(format!("planning {}", name.display()));
    let compiled = compile(file, placement).map_err(Failure::from_diagnostics)?;
    match compiled.unproved() {
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
    pub(super) compiled: &'a Compiled,
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
    /// Whether kernels are timed.
    pub(super) profile: bool,
}

impl<'a> Loading<'a> {
    /// Cells of caches without a window: as many as the plan has, if they are used.
    pub(super) fn n_ctx(&self) -> usize {
        self.used(self.compiled.caches.n_ctx)
    }

    fn used(&self, planned: u64) -> usize {
        usize::try_from(planned)
            .unwrap_or(usize::MAX)
            .min(self.cells)
    }

    /// The configuration of the session.
    fn config(&self) -> SessionConfig {
        let config = SessionConfig::new(self.n_ctx()).with_sequences(self.sequences);
        match self.compiled.model.summary.window {
            Some(window) => config.with_window(window, self.used(self.compiled.caches.n_ctx_swa)),
            None => config,
        }
    }

    /// The model in the executor that the options ask for, with its weights loaded.
    ///
    /// # Errors
    /// Where the program does not verify, memory does not suffice, or an op has no kernel.
    pub(super) fn load(self) -> Result<Box<dyn Model + 'a>, Failure> {
        let n = self.file.header().tensors().len();
        let progress = Progress::with_steps(format!("loading {}", self.name.display()), n);
        let weights = FileWeights {
            file: self.file,
            progress: &progress,
        };
        let config = self.config();
        match self.executor {
            ExecutorKind::Reference => {
                let session = Session::new(&self.compiled.programs, &weights, config);
                Ok(Box::new(session.map_err(|e| execution_failure(&e))?))
            }
            ExecutorKind::Cpu => {
                let session = self.on_cpu(&weights, config)?;
                Ok(Box::new(session))
            }
        }
    }

    /// A session on the CPU executor.
    fn on_cpu(
        &self,
        weights: &FileWeights<'_>,
        config: SessionConfig,
    ) -> Result<Session<CpuExecutor>, Failure> {
        let mut shapes = vec![self.shape(&config, 1)];
        if self.batch > 1 {
            shapes.push(self.shape(&config, self.batch));
        }
        let program = assemble(&self.compiled.programs, &shapes, &CpuTarget).map_err(|e| {
            execution_failure(&ExecError::Size {
                what: e.to_string(),
            })
        })?;
        verify(&program).map_err(|errors| self.refused(&errors))?;
        let options = CpuOptions {
            threads: self.threads,
            options: Options::default(),
            profile: self.profile,
        };
        let executor = CpuExecutor::new(Arc::new(program), weights, options);
        let session = executor.and_then(|e| Session::with_executor(e, config));
        session.map_err(|e| execution_failure(&e))
    }

    /// The shape of batches of up to `tokens` tokens.
    fn shape(&self, config: &SessionConfig, tokens: usize) -> BatchShape {
        let n = |n: usize| n as u64;
        BatchShape {
            most: Bindings::default()
                .with(Symbol::NTokens, n(tokens))
                .with(Symbol::NKv, n(config.n_ctx))
                .with(Symbol::NKvSwa, n(config.n_ctx_swa))
                .with(Symbol::NCtx, n(config.n_ctx))
                .with(Symbol::NCtxSwa, n(config.n_ctx_swa))
                .with(Symbol::NSeqs, n(config.n_seq_max.min(tokens)))
                .with(Symbol::NSeqTokens, n(tokens))
                .with(Symbol::NSeqMax, n(config.n_seq_max))
                .with(Symbol::NOutputs, n(self.outputs.min(tokens))),
        }
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
