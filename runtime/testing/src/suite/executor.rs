//! Executors under test, and factories that build them.

use tpc_runtime::ExecError;

use crate::cases::Case;
use crate::compare::operands;
use crate::random::Random;
use crate::stored::Stored;

/// The reason for which an executor did not run a case.
#[derive(Clone, Debug)]
pub enum Failure {
    /// It has no kernel for the op on these types.
    NoKernel(String),
    /// An index of an operand is out of range.
    Index {
        /// The thing that the index names, where the executor says it.
        what: Option<&'static str>,
        /// The index.
        index: i64,
        /// The number of things.
        bound: i64,
    },
    /// The sizes do not fit the op.
    Shape(String),
    /// Anything else, wrong results included.
    Other(String),
}

impl From<ExecError> for Failure {
    fn from(e: ExecError) -> Failure {
        let text = e.to_string();
        match e.cause() {
            &ExecError::Index { what, index, bound } => Failure::Index {
                what: Some(what),
                index,
                bound: bound as i64,
            },
            ExecError::Shape { .. } => Failure::Shape(text),
            _ => Failure::Other(text),
        }
    }
}

/// An executor that runs the op of a case on tensors in memory.
pub trait ExecutorUnderTest {
    /// Runs the op. `in_place` names an operand and the result that has the operand's memory instead of its own.
    ///
    /// # Errors
    /// When the executor refuses the case, or fails.
    fn run(
        &mut self,
        case: &Case,
        operands: &mut [Stored],
        results: &mut [Stored],
        in_place: Option<(usize, usize)>,
    ) -> Result<(), Failure>;

    /// The operands in the layouts that the executor reads.
    fn operands(&self, case: &Case, random: &Random) -> Vec<Stored> {
        operands(case, random)
    }

    /// The memory of the results before the op runs.
    fn results(&self, case: &Case, _operands: &[Stored], random: &Random) -> Vec<Stored> {
        let poison = |shape| Stored::poison(shape, random);
        case.shapes().into_iter().map(poison).collect()
    }

    /// The tolerance of the executor's kernel for a case.
    fn tolerance(&self, case: &Case) -> f64 {
        case.tolerance
    }
}

/// Builds executors under test.
pub struct Factory {
    /// The executor's name in [`EXCEPTIONS`](super::EXCEPTIONS).
    pub executor: &'static str,
    /// Cases per op.
    pub cases: u64,
    /// Builds variants of the executor, which give the same bits. Without what they need it reports a skipped test, and builds none.
    pub build: fn() -> Vec<Box<dyn ExecutorUnderTest>>,
}
