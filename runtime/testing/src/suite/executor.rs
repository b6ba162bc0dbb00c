//! The interface of executors under test.

use tpc_runtime::ExecError;

use crate::cases::Case;
use crate::compare::operands;
use crate::random::Random;
use crate::stored::Stored;

/// The reason why a case failed.
#[derive(Clone, Debug)]
pub enum Failure {
    /// The executor does not support the op with these types.
    NoKernel(String),
    /// An operand's index is out of range.
    Index {
        /// The kind of indexed item, if reported.
        what: Option<&'static str>,
        /// The index.
        index: i64,
        /// The number of items.
        bound: i64,
    },
    /// The sizes do not match the op.
    Shape(String),
    /// Another failure, such as a wrong result.
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

/// Runs the op of a case on tensors in memory.
pub trait ExecutorUnderTest {
    /// Runs the op. `in_place` names an operand and the result that overwrites it.
    ///
    /// # Errors
    /// Returns a [`Failure`] if the executor refuses the case.
    fn run(
        &mut self,
        case: &Case,
        operands: &mut [Stored],
        results: &mut [Stored],
        in_place: Option<(usize, usize)>,
    ) -> Result<(), Failure>;

    /// Stores the operands in layouts that the executor reads.
    fn operands(&self, case: &Case, random: &Random) -> Vec<Stored> {
        operands(case, random)
    }

    /// Returns memory for the results, filled with a pattern.
    fn results(&self, case: &Case, _operands: &[Stored], random: &Random) -> Vec<Stored> {
        let poison = |shape| Stored::poison(shape, random);
        case.shapes().into_iter().map(poison).collect()
    }

    /// Returns the kernel's tolerance for a case.
    fn tolerance(&self, case: &Case) -> f64 {
        case.tolerance
    }
}

/// An executor to test: name, number of cases, and constructor.
pub struct Factory {
    /// The executor's name in [`EXCEPTIONS`](super::EXCEPTIONS).
    pub executor: &'static str,
    /// The number of cases per op.
    pub cases: u64,
    /// Builds variants of the executor, which must agree bit for bit. Reports a skipped test and returns an empty
    /// list if the machine does not support the executor.
    pub build: fn() -> Vec<Box<dyn ExecutorUnderTest>>,
}
