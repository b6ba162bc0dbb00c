use tpc_ir::program::Program;
use tpc_ir::{Bindings, Symbol};

use crate::error::ExecError;
use crate::memories::Memories;
use crate::transfers::Transfers;

/// Counter of the batches that an executor has begun.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Batches(u64);

/// A partly run batch. All executors use this type, so [`Executor`](crate::Executor) is object-safe.
#[derive(Clone, Debug)]
pub struct BatchRun {
    sizes: Bindings,
    phase: usize,
    /// Batch number in an executor of programs; `None` before the first phase.
    batch: Option<u64>,
    /// Values that the reference executor keeps for later phases.
    pub(crate) memories: Memories,
    /// Transfers counted by the reference executor.
    pub(crate) transfers: Transfers,
}

/// The next phase to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextPhase {
    /// Index of the phase.
    pub phase: usize,
    /// Index of the shape that holds the batch.
    pub shape: usize,
    /// True for the batch's first phase.
    pub first: bool,
}

impl BatchRun {
    /// Returns a batch of these sizes before its first phase.
    pub fn new(sizes: &Bindings) -> BatchRun {
        BatchRun {
            sizes: *sizes,
            phase: 0,
            batch: None,
            memories: Memories::default(),
            transfers: Transfers::default(),
        }
    }

    /// Returns the batch's sizes.
    pub const fn sizes(&self) -> &Bindings {
        &self.sizes
    }

    /// Returns the index of the next phase.
    pub const fn phase(&self) -> usize {
        self.phase
    }

    /// Returns the number of tokens after the batch that the next phase needs; `None` after the last phase.
    pub fn lookahead(&self, program: &Program) -> Option<u32> {
        program.phases.get(self.phase).map(|p| p.lookahead)
    }

    /// Returns the next phase; `None` after the last. The first phase begins a batch and invalidates later phases of
    /// earlier batches.
    ///
    /// # Errors
    /// Returns [`ExecError::BadBatch`] if no shape holds the batch, [`ExecError::NothingToDraft`] if another batch has
    /// begun since.
    pub fn next(
        &mut self,
        program: &Program,
        batches: &mut Batches,
    ) -> Result<Option<NextPhase>, ExecError> {
        if self.phase >= program.phases.len() {
            return Ok(None);
        }
        let shape = program.shape_for(&self.sizes);
        let shape = shape.ok_or_else(|| too_large(program, &self.sizes))?;
        let first = self.batch.is_none();
        if first {
            batches.0 += 1;
            self.batch = Some(batches.0);
        } else if self.batch != Some(batches.0) {
            return Err(ExecError::NothingToDraft);
        }
        let phase = self.phase;
        Ok(Some(NextPhase {
            phase,
            shape,
            first,
        }))
    }

    /// Advances to the next phase.
    pub const fn advance(&mut self) {
        self.phase += 1;
    }
}

fn too_large(program: &Program, sizes: &Bindings) -> ExecError {
    let most = program.shapes.last().map(|s| s.most).unwrap_or_default();
    let over = Symbol::ALL
        .into_iter()
        .filter(|s| sizes.get(*s) > most.get(*s));
    let over: Vec<String> = over
        .map(|s| format!("{} {} (at most {})", s.name(), sizes.get(s), most.get(s)))
        .collect();
    ExecError::BadBatch {
        what: format!("too large for the program: {}", over.join(", ")),
    }
}
