use std::path::Path;
use std::sync::Arc;

use tpc_diag::{Diagnostic, codes};
use tpc_gguf::GgufFile;
use tpc_ir::program::Program;
use tpc_ir::program::verify::{ProgramError, verify};
use tpc_ir::{Verified, stage};
use tpc_runtime::{ExecError, Executor, Interpreter, Options, Session, SessionConfig};

use crate::devices::{cards, numa};
use crate::error::{Error, execution_diagnostic};
use crate::executor::{ExecutorKind, ExecutorOptions};
use crate::observer::Observer;
use crate::prepared::{Code, PreparedModel, lay_out};
use crate::weights::FileWeights;

/// A session on any executor.
pub type AnySession<'a> = Session<dyn Executor + 'a>;

/// Loads a prepared model and opens a session.
#[derive(Clone)]
pub struct Loader<'a> {
    /// Name of the model in messages.
    pub name: &'a Path,
    /// File with the weights.
    pub file: &'a GgufFile,
    /// The prepared model.
    pub model: &'a PreparedModel,
    /// Maximum cells of each cache in the session. A plan may have more.
    pub ctx_size: usize,
    /// Maximum tokens per batch.
    pub batch: usize,
    /// Maximum tokens per batch with logits.
    pub outputs: usize,
    /// Number of sequences.
    pub sequences: usize,
    /// Options of the executor.
    pub executor: ExecutorOptions,
}

impl<'a> Loader<'a> {
    /// Returns the maximum tokens per sequence.
    pub fn sequence_ctx_size(&self) -> usize {
        let cells = self.model.cells(self.ctx_size, self.sequences);
        usize::try_from(cells.ctx_size).unwrap_or(usize::MAX)
    }

    /// Loads the model with its weights.
    ///
    /// # Errors
    /// Returns an error if the verifier rejects the program, memory is too small, or an op lacks a kernel.
    pub fn load(self, observer: &dyn Observer) -> Result<AnySession<'a>, Error> {
        let weights = FileWeights {
            file: self.file,
            observer,
        };
        let config = (self.model).session_config(self.ctx_size, self.sequences);
        self.model.check_executor(self.executor.kind)?;
        if self.executor.kind == ExecutorKind::Reference {
            let graph = match &self.model.code {
                Code::Plan(programs) => programs,
                Code::Program(program) => &program.graph,
            };
            let interpreter = Interpreter::new(graph, &weights, Options::default())?;
            let executor: Box<dyn Executor + 'a> = Box::new(interpreter);
            return Ok(Session::with_executor(executor, config)?);
        }
        if self.executor.kind == ExecutorKind::Cuda {
            cards::no_processor(&self.model.kinds)?;
        }
        if self.executor.kind == ExecutorKind::Cpu {
            let nodes = self.executor.nodes.as_deref();
            numa::core_sets(&self.model.kinds, nodes).map_err(Error::usage)?;
        }
        let program = match &self.model.code {
            Code::Plan(programs) => self.lay_out_verified(programs, &config)?,
            Code::Program(program) => Arc::clone(program),
        };
        let PreparedModel {
            kinds, prebuilt, ..
        } = self.model;
        let loaded = self.executor.load(program, &weights, kinds, prebuilt);
        let session = loaded.and_then(|loaded| {
            cards::report_peers(&loaded.no_peer_access, observer);
            Session::with_executor(loaded.executor, config)
        });
        session.map_err(|e| match &e {
            // Caches take most of the memory, so a smaller context helps most.
            ExecError::Size { .. } if self.executor.kind == ExecutorKind::Cpu => {
                let SessionConfig { n_ctx, .. } = config;
                let cure =
                    format!("give a smaller context (-c, now {n_ctx}) or a smaller batch (-ub)");
                Error::findings(vec![execution_diagnostic(&e).help(cure)])
            }
            _ => Error::from(e),
        })
    }

    fn lay_out_verified(
        &self,
        programs: &Verified<stage::Programs>,
        config: &SessionConfig,
    ) -> Result<Arc<Program>, Error> {
        let sizes = [self.batch, self.outputs];
        let program = lay_out(programs, config, sizes, self.executor.kind.target())?;
        verify(&program).map_err(|errors| self.verification_error(&errors))?;
        Ok(Arc::new(program))
    }

    /// Converts errors of the verifier into a diagnostic. They are bugs in tpc.
    fn verification_error(&self, errors: &[ProgramError]) -> Error {
        let name = self.name.display().to_string();
        let diagnostic = |e: &ProgramError| {
            Diagnostic::new(&codes::UNVERIFIED_PLAN, &name, format!("{}: {e}", e.code)).help(
                "this is a bug in tpc: report it with the command and the model's header; --executor reference \
                 runs the model",
            )
        };
        Error::findings(errors.iter().take(8).map(diagnostic).collect())
    }
}
